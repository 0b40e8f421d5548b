// The functions of CUDA's runtime that memory of GPUs needs, loaded at run time
// as those of NCCL are: every build compiles what calls them, and tests give it
// a stand-in (tests/support/cuda/fake_cudart.cpp). The runtime is the one that
// libtorch has loaded, so both share contexts and streams. Types and numbers
// are those of cuda_runtime_api.h 13.
#pragma once

#include <array>
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

/// Work on memory in the order of a stream.
struct CudaCopies {
  int (*set_bytes)(void* data, int value, std::size_t size_bytes, CudaStream)
    = nullptr;
  int (*copy_bytes)(void* to, const void* from, std::size_t size_bytes,
                    int kind, CudaStream)
    = nullptr;
  /// Copies `rows` rows of `row_bytes`; strides are at least that.
  int (*copy_rows)(void* to, std::size_t to_stride, const void* from,
                   std::size_t from_stride, std::size_t row_bytes,
                   std::size_t rows, int kind, CudaStream)
    = nullptr;
};

/// cudaIpcMemHandle_t.
struct CudaIpcHandle {
  std::array<std::byte, 64> bytes;
};

/// Memory that processes of one host share.
struct CudaIpc {
  int (*share)(CudaIpcHandle* handle, void* base) = nullptr;
  int (*open)(void** base, CudaIpcHandle handle, unsigned flags) = nullptr;
  int (*close)(void* base) = nullptr;
  /// Finds a function of the driver.
  int (*driver_function)(const char* name, void** found, unsigned cuda_version,
                         unsigned long long flags, int* result)
    = nullptr;
};

/// Functions by name; results are 0 on success.
struct CudaRuntime {
  CudaDevices devices;
  int (*get_device)(int* device) = nullptr;
  int (*set_device)(int device) = nullptr;
  int (*memory_info)(std::size_t* free, std::size_t* total) = nullptr;
  CudaCopies copies;
  CudaIpc ipc;
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
