#include "models/gpu/own_kernels.hpp"

#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <atomic>

namespace troupe::models::gpu {

namespace {

std::atomic<KernelObserver> kernel_observer = nullptr;

} // namespace

bool has_gpu_kernels() {
#ifdef TROUPE_GPU_KERNELS
  return true;
#else
  return false;
#endif
}

void observe_kernels(KernelObserver observer) {
  kernel_observer = observer;
}

void observe(const KernelCost& cost) {
  if (const KernelObserver observer = kernel_observer)
    observer(cost);
}

GpuStream current_stream(at::Device gpu) {
  const auto* devices = c10::impl::getDeviceGuardImpl(gpu.type());
  return static_cast<GpuStream>(
    devices->getStreamNativeHandle(devices->getStream(gpu)));
}

} // namespace troupe::models::gpu
