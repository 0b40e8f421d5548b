// The stand-in for NCCL and CUDA's runtime (fake_nccl.cpp) as tests open it.
#pragma once

#include "net/base/library_file.hpp"
#include "net/collectives/nccl_library.hpp"

#include <cstddef>
#include <cstdint>

namespace troupe::testing {

/// Functions of the stand-in beside NCCL's and CUDA's.
struct FakeNccl {
  /// Returns how many NCCL groups have been made so far.
  std::uint64_t (*groups)() = nullptr;
  /// Makes memory of the host count as a GPU's.
  void (*count_as_gpu)(const std::byte* data, std::size_t bytes) = nullptr;
  /// Makes the calling thread's streams ones that are captured, or not.
  void (*capture)(bool on) = nullptr;
  /// Returns how often events were queried.
  std::uint64_t (*queries)() = nullptr;

  static const FakeNccl& instance() {
    static const FakeNccl found = [] {
      FakeNccl functions;
      net::LibraryFile file(TROUPE_FAKE_NCCL);
      file.find("fake_nccl_groups", functions.groups);
      file.find("fake_gpu_memory", functions.count_as_gpu);
      file.find("fake_gpu_capture", functions.capture);
      file.find("fake_gpu_queries", functions.queries);
      return functions;
    }();
    return found;
  }
  static const net::NcclLibrary& library() {
    static const auto library
      = net::NcclLibrary::open(TROUPE_FAKE_NCCL, TROUPE_FAKE_NCCL);
    return library;
  }
  /// Returns the library of a host that has CUDA alone.
  static const net::NcclLibrary& absent() {
    static const auto library
      = net::NcclLibrary::open("libnone.so", TROUPE_FAKE_NCCL);
    return library;
  }
};

} // namespace troupe::testing
