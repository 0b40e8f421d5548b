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

using CudaEvent = void*;

/// State of a capture from a stream, as cudaStreamCaptureStatus. An
/// invalidated capture takes no more work and is refused at its end.
enum class CaptureState : int { none = 0, active = 1, invalidated = 2 };

/// Marks in the order of streams, for which other streams wait.
struct CudaEvents {
  int (*make)(CudaEvent* made, unsigned flags) = nullptr;
  int (*record)(CudaEvent event, CudaStream stream) = nullptr;
  int (*query)(CudaEvent event) = nullptr;
  int (*drop)(CudaEvent event) = nullptr;
  int (*hold_stream)(CudaStream stream, CudaEvent until, unsigned flags)
    = nullptr;
  int (*capture_of)(CudaStream stream, CaptureState* state) = nullptr;
};

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
  CudaEvents events;
};

/// Memory of the current device, and copies in the order of a stream.
struct CudaBlocks {
  int (*take)(void** made, std::size_t size_bytes) = nullptr;
  int (*give)(void* data) = nullptr;
  int (*copy)(void* to, const void* from, std::size_t size_bytes, int kind,
              CudaStream stream)
    = nullptr;
};

/// The begin of ncclConfig_t as NCCL 2.14 had it: later versions take what is
/// not there from their defaults.
struct NcclConfig {
  std::size_t size = sizeof(NcclConfig);
  unsigned magic = 0xcafebeef;
  unsigned version = 21400;
  int blocking = 1; ///< 0: calls return nccl_in_progress, and go on
};

/// Functions that make and end a group, and that hold calls of a thread back
/// until it has made them all: they then start together.
struct NcclGroups {
  int (*get_id)(NcclId* id) = nullptr;
  int (*init_rank)(NcclCommunicator* made, int size, NcclId id, int rank)
    = nullptr;
  int (*init_configured)(NcclCommunicator* made, int size, NcclId id, int rank,
                         NcclConfig* config)
    = nullptr;
  int (*abort)(NcclCommunicator communicator) = nullptr;
  int (*async_error)(NcclCommunicator communicator, int* error) = nullptr;
  int (*begin_calls)() = nullptr;
  int (*end_calls)() = nullptr;
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
  CudaBlocks blocks;
  std::string why_not; ///< empty: every function was found

  /// Loads the library from these files; opened once and never closed.
  static NcclLibrary open(const char* nccl, const char* cuda_runtime);
  /// Returns the machine's libraries, as found by the loader.
  static const NcclLibrary& machine();

  /// Returns "2.28.9".
  std::string version() const;
  /// Returns true if `pointer` is memory of a GPU.
  bool on_gpu(const void* pointer) const;
};

} // namespace troupe::net
