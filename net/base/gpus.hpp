// The GPUs of this host that this build can use, and their memory. A build
// without CUDA reports none with the reason; so does one with CUDA on a host
// without a driver, since starting needs nothing of the driver.
//
// Memory of GPUs is managed (cudaMallocManaged): kernels and the host use the
// same addresses, the host after kernels have finished. This lets files, moves,
// checkpoints and the host's collectives access it directly; pages migrate on
// demand. The driver would let more be allocated than a GPU has, and move pages
// to and fro: a block that is larger than what is free is refused instead.
#pragma once

#include "net/base/block_memory.hpp"
#include "net/base/cuda_runtime.hpp"

#include <array>
#include <cstdint>
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
/// Returns the allocator shared by all GPUs of this process; null in a build
/// without CUDA.
const BlockMemory* gpu_memory();

/// Allocates zeroed memory on the current device of the calling thread. If it
/// has less free, calls `make_room`, which frees what is kept for reuse; throws
/// a FailureError if that is not enough.
void* take_gpu_memory(
  const CudaRuntime& cuda, std::size_t size_bytes, void (*make_room)() = [] {});
/// Frees the block after the kernels of its device that are under way.
void give_gpu_memory(const CudaRuntime& cuda, void* data) noexcept;
/// Moves the block's pages to the host after those kernels.
void evict_gpu_memory(const CudaRuntime& cuda, void* data,
                      std::size_t size_bytes);
/// Copies between a block and host memory, after the kernels of the block's
/// device that are under way; returns when it is done.
void read_gpu_memory(const CudaRuntime& cuda, const void* from, void* to,
                     std::size_t size_bytes);
void write_gpu_memory(const CudaRuntime& cuda, const void* from, void* to,
                      std::size_t size_bytes);
/// Returns whether the address is in a block that was taken here.
bool is_gpu_memory(const void* data);

} // namespace troupe::net
