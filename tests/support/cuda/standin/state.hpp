// Records of the stand-in for CUDA's runtime: the last error and the
// current device of each thread, the error that ends a context, counts, and
// faults in words.
#pragma once

#include "standin.hpp"

#include <map>
#include <string>

namespace troupe::standin {

/// Numbers of a process, and what went wrong.
struct State {
  int num_devices = 2;
  int host = 0; ///< its GPUs are others than those of other hosts
  std::size_t device_bytes = std::size_t{16} << 30;
  std::map<std::string, long> launches;
  std::map<std::string, long> waits;
  std::map<std::string, long> bodiless;
  long faults = 0;
  std::string last_fault;
  cudaError_t sticky = cudaSuccess; ///< of an access that ends the context
};

/// Returns the process's; the environment says how many GPUs of which size it
/// begins with.
State& state();

/// State that CUDA keeps per thread.
struct ThreadState {
  int device = 0;
  cudaError_t last_error = cudaSuccess;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  bool is_shadow = false;
};
ThreadState& thread_state();

/// Keeps a result as the thread's last error unless it is 0.
cudaError_t said(cudaError_t result);
/// Returns the error that ended the context, or what was said.
cudaError_t after_work(cudaError_t result = cudaSuccess);
/// Counts and prints what went wrong; an error other than 0 becomes sticky.
void fault(cudaError_t sticky, const std::string& what);
/// Counts a call that makes the host wait.
void count_wait(const char* call);

} // namespace troupe::standin
