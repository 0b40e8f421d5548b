// NCCL and the few functions of CUDA's runtime that its callers need, loaded at
// run time: nothing here links to either. Types and numbers are those of nccl.h
// 2 and cuda_runtime_api.h.
#pragma once

#include "net/base/cuda_runtime.hpp"

#include <cstddef>
#include <string>

namespace troupe::net {

struct NcclId {
  char bytes[128];
};
using NcclCommunicator = void*;

/// Functions of CUDA's runtime by name; results are 0 on success.
struct CudaStreams {
  int (*set_device)(int device) = nullptr;
  int (*make_stream)(CudaStream* made, unsigned flags) = nullptr;
  int (*query_stream)(CudaStream stream) = nullptr;
  int (*drop_stream)(CudaStream stream) = nullptr;
  int (*pointer_attributes)(void* attributes, const void* pointer) = nullptr;
  /// Every CUDA result but 0, "not ready" too, remains the calling thread's
  /// last error: its next kernel launch would fail with it if it stayed.
  int (*clear_error)() = nullptr;
};

/// Functions that make and end a group.
struct NcclGroups {
  int (*get_id)(NcclId* id) = nullptr;
  int (*init_rank)(NcclCommunicator* made, int size, NcclId id, int rank)
    = nullptr;
  int (*abort)(NcclCommunicator communicator) = nullptr;
  int (*async_error)(NcclCommunicator communicator, int* error) = nullptr;
};

/// Functions by name; results are 0 on success.
struct NcclLibrary {
  int (*get_version)(int* version) = nullptr;
  const char* (*error_text)(int result) = nullptr;
  NcclGroups groups;
  int (*all_reduce)(const void* from, void* to, std::size_t count, int type,
                    int operation, NcclCommunicator, CudaStream)
    = nullptr;
  int (*all_gather)(const void* from, void* to, std::size_t count, int type,
                    NcclCommunicator, CudaStream)
    = nullptr;
  int (*reduce_scatter)(const void* from, void* to, std::size_t count, int type,
                        int operation, NcclCommunicator, CudaStream)
    = nullptr;
  int (*broadcast)(const void* from, void* to, std::size_t count, int type,
                   int root, NcclCommunicator, CudaStream)
    = nullptr;
  int (*send)(const void* from, std::size_t count, int type, int peer,
              NcclCommunicator, CudaStream)
    = nullptr;
  int (*receive)(void* to, std::size_t count, int type, int peer,
                 NcclCommunicator, CudaStream)
    = nullptr;

  CudaStreams cuda;
  std::string why_not; ///< empty: every function was found

  /// Loads the library from these files; opened once and never closed.
  static NcclLibrary open(const char* nccl, const char* cuda_runtime);
  /// Returns the machine's libraries, as found by the loader.
  static const NcclLibrary& machine();

  /// Returns "2.28.9".
  std::string version() const;
  /// Returns true if kernels can access `pointer`: memory of a GPU, or managed.
  bool on_gpu(const void* pointer) const;
};

} // namespace troupe::net
