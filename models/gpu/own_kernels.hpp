// Runs kernels of models/gpu/kernels for a backend: on a GPU in the order of
// the calling thread's stream, on the CPU at once in their host form, so that
// tests without a GPU run the same calls.
#pragma once

#include "config/base/error.hpp"
#include "models/gpu/kernels/grid.hpp"
#include "models/gpu/kernels/launch.hpp"

#include <c10/core/Device.h>

#include <cstdint>

namespace troupe::models::gpu {

/// Returns true if this program has the kernels for GPUs: nvcc compiled them.
bool has_gpu_kernels();

/// The cost of a launch on a GPU.
struct KernelCost {
  const char* name = "";
  std::int64_t bytes = 0; ///< read and written
};

/// Observer of launches, for tests that count them.
using KernelObserver = void (*)(const KernelCost& cost);
/// Sets the observer of all threads; null: none.
void observe_kernels(KernelObserver observer);

/// Tells the observer, if there is one.
void observe(const KernelCost& cost);
/// Returns the calling thread's stream of a GPU.
GpuStream current_stream(at::Device gpu);

/// Runs `blocks` blocks of a kernel.
template <class Body>
void run_kernel(at::Device device, const Body& body, std::int64_t blocks,
                const KernelCost& cost) {
  observe(cost);
  if (device.is_cpu())
    return run_on_host(body, blocks);
#ifdef TROUPE_GPU_KERNELS
  launch(body, blocks, current_stream(device));
#else
  TROUPE_CHECK(false, "this source was compiled without launches for GPUs");
#endif
}

} // namespace troupe::models::gpu
