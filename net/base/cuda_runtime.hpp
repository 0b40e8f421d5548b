// The functions of CUDA's runtime that memory of GPUs needs, loaded at run time
// as those of NCCL are: every build compiles what calls them, and tests give it
// a stand-in (tests/support/cuda/fake_cudart.cpp). The runtime is the one that
// libtorch has loaded, so both share contexts and streams. Types and numbers
// are those of cuda_runtime_api.h 13.
#pragma once

#include <cstddef>
#include <string>

namespace troupe::net {

using CudaStream = void*; ///< null: the default stream of the current device

/// The driver's answers about itself and its devices.
struct CudaDevices {
  int (*driver_version)(int* version) = nullptr;
  int (*count)(int* count) = nullptr;
  int (*properties)(void* properties, int device) = nullptr;
  int (*attribute)(int* value, int attribute, int device) = nullptr;
};

/// Functions by name; results are 0 on success.
struct CudaRuntime {
  CudaDevices devices;
  int (*get_device)(int* device) = nullptr;
  int (*set_device)(int device) = nullptr;
  int (*memory_info)(std::size_t* free, std::size_t* total) = nullptr;
  int (*set_bytes)(void* data, int value, std::size_t size_bytes, CudaStream)
    = nullptr;
  int (*copy_bytes)(void* to, const void* from, std::size_t size_bytes,
                    int kind, CudaStream)
    = nullptr;
  int (*wait_stream)(CudaStream) = nullptr;
  int (*clear_error)() = nullptr; ///< cudaGetLastError of the calling thread
  const char* (*error_text)(int result) = nullptr;

  std::string why_not; ///< empty: every function was found

  /// Loads the library from this file; opened once and never closed.
  static CudaRuntime open(const char* file);
  /// Returns the machine's; a build without CUDA has none.
  static const CudaRuntime& machine();
};

} // namespace troupe::net
