// The GPUs of this host that this build can use, and their memory. A build
// without CUDA reports none with the reason; so does one with CUDA on a host
// without a driver, since starting needs nothing of the driver.
//
// Memory of GPUs is managed (cudaMallocManaged): kernels and the host use the
// same addresses, the host after kernels have finished. This lets files, moves,
// checkpoints and the host's collectives access it directly; pages migrate on
// demand.
#pragma once

#include "net/base/block_memory.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::net {

struct GpuReport {
  std::vector<std::string> names; ///< names of the usable ones
  std::vector<int> generations; ///< compute capability: 8 Ampere, 9 Hopper, ...
  std::vector<std::uint64_t> memory_bytes; ///< total memory of each
  std::string driver;                      ///< "CUDA 13.0"; empty: none
  std::string why_none;                    ///< if there are none: one sentence
};

/// Queries the driver on every call.
GpuReport find_gpus();
/// Returns the allocator shared by all GPUs of this process; null in a build
/// without CUDA.
const BlockMemory* gpu_memory();

} // namespace troupe::net
