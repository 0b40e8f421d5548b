// Enqueues kernels of this folder on a GPU, for callers that g++ compiles. Each
// .cu file instantiates `launch` for its bodies; a body without one is an error
// of the linker.
#pragma once

#include <cstdint>

struct CUstream_st; // CUDA's name of a stream

namespace troupe::models::gpu {

using GpuStream = CUstream_st*;

/// Enqueues `blocks` blocks of a kernel on the current device's stream. Does
/// not wait. Throws FailureError if the launch was refused.
template <class Body>
void launch(const Body& body, std::int64_t blocks, GpuStream stream);

} // namespace troupe::models::gpu
