// The definition of launch.hpp that .cu files include where g++ compiles them
// for the stand-ins: a launch goes to CUDA's runtime as nvcc's does, whose
// stand-in runs the body's host form (own_kernels.cpp).
#pragma once

#include "config/base/error.hpp"
#include "models/gpu/kernels/grid.hpp"
#include "models/gpu/kernels/launch.hpp"

#include <cuda_runtime_api.h>

#include <typeinfo>

extern "C" void __cudaRegisterFunction(void** module, const char* stub,
                                       char* kernel, const char* name,
                                       int threads, uint3*, uint3*, dim3*,
                                       dim3*, int*);

namespace troupe::models::gpu {

template <class Body>
void launch(const Body& body, std::int64_t blocks, GpuStream stream) {
  if (blocks == 0)
    return;                   // which CUDA refuses
  static const char stub = 0; // its address is the kernel
  static const bool is_registered
    = (__cudaRegisterFunction(nullptr, &stub, nullptr, typeid(Body).name(), -1,
                              nullptr, nullptr, nullptr, nullptr, nullptr),
       true);
  static_cast<void>(is_registered);
  void* arguments[] = {const_cast<Body*>(&body)};
  cudaLaunchKernel(&stub, dim3(static_cast<unsigned>(blocks)),
                   dim3(Body::threads), arguments, 0, stream);
  const cudaError_t error = cudaGetLastError();
  if (error != cudaSuccess)
    throw FailureError({Errc::io, "GPU", "a kernel could not be launched",
                        cudaGetErrorString(error)});
}

} // namespace troupe::models::gpu
