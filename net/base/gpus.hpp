// The GPUs of this host that this build can use, and their memory. A build
// without CUDA reports none with the reason; so does one with CUDA on a host
// without a driver, since starting needs nothing of the driver.
//
// Memory of GPUs comes from one allocator, libtorch's
// (models/gpu/gpu_memory.hpp), and only kernels and copies use its addresses.
#pragma once

#include "config/base/byte_runs.hpp"
#include "net/base/cuda_runtime.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace troupe::net {

/// The UUID of a GPU.
using GpuIdentity = std::array<std::int32_t, 4>;

struct GpuReport {
  std::vector<std::string> names; ///< names of the usable ones
  std::vector<int> generations; ///< compute capability: 8 Ampere, 9 Hopper, ...
  std::vector<std::uint64_t> memory_bytes; ///< total memory of each
  std::vector<GpuIdentity> ids;            ///< identity of each
  std::string driver;                      ///< "CUDA 13.0"; empty: none
  std::string why_none;                    ///< if there are none: one sentence
  /// True if the host has GPUs that cannot be used: `device: auto` does not
  /// take the CPU for them.
  bool is_refused = false;
};

/// Queries the driver on every call.
GpuReport find_gpus(const CudaRuntime& cuda = CudaRuntime::machine());
/// Takes and frees memory of the current device in the order of its default
/// stream; `take` returns null if there is too little.
struct GpuAllocator {
  void* (*take)(std::size_t size_bytes);
  void (*give)(void* data);
};

/// Allocates memory on the current device of the calling thread, which the
/// device zeroes. Throws a FailureError that says what is free.
void* take_gpu_memory(const CudaRuntime& cuda, const GpuAllocator& allocator,
                      std::size_t size_bytes);
void give_gpu_memory(const GpuAllocator& allocator, void* data);
/// Copies between a block and host memory, after the kernels of the block's
/// device that are under way; returns when it is done.
void read_gpu_memory(const CudaRuntime& cuda, const void* from, void* to,
                     std::size_t size_bytes);
void write_gpu_memory(const CudaRuntime& cuda, const void* from, void* to,
                      std::size_t size_bytes);
/// Copies runs between blocks of any GPUs, of this or another process, and host
/// memory, after the kernels of the target's device, or of the source's if the
/// target is the host's, that are under way; returns when it is done.
void copy_gpu_memory(const CudaRuntime& cuda, const void* from, void* to,
                     std::span<const ByteRuns> runs);
/// Returns the GPU of the block that has the address; -1: none was taken here.
int gpu_of_memory(const void* data);

} // namespace troupe::net
