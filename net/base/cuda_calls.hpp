// The check of a result and the current device that every call of CUDA's
// runtime needs around it. An unread error would be reported by the thread's
// next kernel launch.
#pragma once

#include "config/base/error.hpp"
#include "net/base/cuda_runtime.hpp"

namespace troupe::net {

/// Throws a FailureError that begins with `what` if the result is an error.
inline void gpu_check(const CudaRuntime& cuda, int result, const char* what) {
  if (result == 0)
    return;
  cuda.clear_error();
  throw FailureError{{.code = Errc::io,
                      .who = "gpu",
                      .what = what,
                      .cause = cuda.error_text(result)}};
}

/// Makes a device current for the calling thread while it exists.
class GpuGuard {
public:
  /// A negative device means the one that is current.
  GpuGuard(const CudaRuntime& cuda, int device) : cuda_(cuda) {
    cuda.get_device(&before_);
    if (device >= 0 && device != before_)
      cuda.set_device(device);
  }
  ~GpuGuard() {
    cuda_.set_device(before_);
  }
  GpuGuard(const GpuGuard&) = delete;
  GpuGuard& operator=(const GpuGuard&) = delete;

private:
  const CudaRuntime& cuda_;
  int before_ = 0;
};

} // namespace troupe::net
