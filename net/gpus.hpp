// The GPUs of this host as this build sees them, and their memory. A build
// without CUDA sees none and says so; so does one with CUDA where there is no
// driver, since nothing of the driver is needed to start.
//
// Memory of GPUs is managed (cudaMallocManaged): kernels and the host use the
// same addresses, the host when kernels are done. That is what lets files,
// moves, checkpoints and the host's collectives reach it as it is; pages travel
// on demand.
#pragma once

#include "net/block_memory.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::net {

struct GpuReport {
  std::vector<std::string> names;          ///< of those that can be used
  std::vector<int> generations;            ///< of each: 8 Ampere, 9 Hopper, ..
  std::vector<std::uint64_t> memory_bytes; ///< of each, all of it
  std::string driver;                      ///< "CUDA 13.0"; empty: none
  std::string why_none; ///< where there are none: one sentence
};

/// Asks the driver anew each time.
GpuReport find_gpus();
/// Shared by all GPUs of this process; null in a build without CUDA.
const BlockMemory* gpu_memory();

} // namespace troupe::net
