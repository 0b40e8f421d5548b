// The definition of launch.hpp, for .cu files.
#pragma once

#include "config/base/error.hpp"
#include "models/gpu/kernels/grid.hpp"
#include "models/gpu/kernels/launch.hpp"

namespace troupe::models::gpu {

template <class Body>
__global__ void __launch_bounds__(Body::threads, 1024 / Body::threads)
  run_body(Body body) {
  __shared__ typename Body::Shared shared;
  body(Block<Body::threads>{blockIdx.x, gridDim.x}, shared);
}

template <class Body>
void launch(const Body& body, std::int64_t blocks, GpuStream stream) {
  if (blocks == 0)
    return; // which CUDA refuses
  run_body<<<static_cast<unsigned>(blocks), Body::threads, 0, stream>>>(body);
  // the last error of the thread, which the next launch must not find
  const cudaError_t error = cudaGetLastError();
  if (error != cudaSuccess)
    throw FailureError({Errc::io, "GPU", "a kernel could not be launched",
                        cudaGetErrorString(error)});
}

} // namespace troupe::models::gpu
