// The stand-in for NCCL and CUDA's runtime (fake_nccl.cpp) as tests open it.
#pragma once

#include "net/base/library_file.hpp"
#include "net/collectives/nccl_agreement.hpp"
#include "net/collectives/nccl_library.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace troupe::testing {

/// Functions of the stand-in beside NCCL's and CUDA's.
struct FakeNccl {
  /// Returns how many NCCL groups have been made so far.
  std::uint64_t (*groups)() = nullptr;
  /// Makes memory of the host count as a GPU's.
  void (*count_as_gpu)(const std::byte* data, std::size_t bytes) = nullptr;
  /// Takes that back.
  void (*forget)(const std::byte* data) = nullptr;
  /// Sets what the calling thread's streams say of a capture.
  void (*capture)(net::CaptureState state) = nullptr;
  /// Makes the calls that the calling thread captured last.
  void (*replay)() = nullptr;

  static const FakeNccl& instance() {
    static const FakeNccl found = [] {
      FakeNccl functions;
      net::LibraryFile file(TROUPE_FAKE_NCCL);
      file.find("fake_nccl_groups", functions.groups);
      file.find("fake_gpu_memory", functions.count_as_gpu);
      file.find("fake_gpu_forget", functions.forget);
      file.find("fake_gpu_capture", functions.capture);
      file.find("fake_gpu_replay", functions.replay);
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

/// Returns the identity of a GPU that no other number has.
inline net::GpuIdentity gpu_of(std::uint32_t number) {
  return {static_cast<std::int32_t>(number), 0, 0, 0};
}

/// Returns what members with a GPU and the stand-in each have.
inline std::vector<net::NcclOffer> nccl_of(std::uint32_t members) {
  std::vector<net::NcclOffer> all;
  for (std::uint32_t i = 0; i < members; ++i)
    all.push_back({gpu_of(i), true});
  return all;
}

} // namespace troupe::testing
