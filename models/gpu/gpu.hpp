// The backend of a GPU of this host (net/base/gpus.hpp): ATen operations in
// its memory, with flash attention from Ampere on and graph capture by CUDA
// graphs. Written against libtorch's documented behaviour and checked through
// the same code on the CPU; it has not run on a GPU yet.
#pragma once

#include <cstdint>

namespace troupe::models {

class Backend;

/// Returns the backend of a device of this host, counted from 0; devices share
/// GPUs if there are more of them. It lives as long as the process. Throws
/// FailureError if there is no GPU. Thread-safe.
Backend& gpu_backend(std::uint32_t device);

/// Returns the CUDA stream of the calling thread's kernels on this GPU, counted
/// from 0 in this process; null: the default one.
void* gpu_stream(int gpu);

} // namespace troupe::models
