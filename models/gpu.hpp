// What computes on a GPU of this host (net/gpus.hpp): ATen's operations in
// managed memory, with its flash attention from Ampere on and recordings as
// CUDA graphs. Written against what
// libtorch promises and checked through the same code on the CPU; it has not
// run on a GPU yet.
#pragma once

#include <cstdint>

namespace troupe::models {

class Compute;

/// Of a device of this host, counted from 0; more devices than GPUs share them.
/// Lives as long as the process. Throws FailureError where there is no GPU.
/// Thread-safe.
Compute& gpu_compute(std::uint32_t device);

} // namespace troupe::models
