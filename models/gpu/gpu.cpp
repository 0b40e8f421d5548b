#include "models/gpu/gpu.hpp"

#include "config/base/error.hpp"
#include "models/gpu/aten_backend.hpp"
#include "models/gpu/fixed_order.hpp"
#include "models/gpu/flash_attention.hpp"
#include "models/gpu/gpu_graph_recorder.hpp"
#include "models/gpu/gpu_memory.hpp"
#include "models/gpu/own_kernels.hpp"
#include "net/base/gpus.hpp"

#include <ATen/Context.h>
#include <c10/core/Stream.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <map>
#include <memory>
#include <mutex>

namespace troupe::models {

namespace {

constexpr int first_with_flash = 8; // Ampere

} // namespace

Backend& gpu_backend(std::uint32_t device) {
  static std::mutex mutex;
  static std::map<std::uint32_t, std::unique_ptr<AtenBackend>> known;
  const std::lock_guard lock(mutex);
  auto& found = known[device];
  if (found)
    return *found;
  const net::GpuReport gpus = net::find_gpus();
  if (gpus.names.empty())
    throw FailureError{{.code = Errc::io,
                        .who = "gpu",
                        .what = "there is no GPU",
                        .cause = gpus.why_none}};
  FixedOrder::allow_products();
  at::globalContext().lazyInitDevice(at::kCUDA);
  const std::size_t index = device % gpus.names.size();
  found = std::make_unique<AtenBackend>(
    at::Device(at::kCUDA, static_cast<at::DeviceIndex>(index)),
    AtenOptions{
      .memory = &gpu_memory(),
      .flash
      = gpus.generations[index] >= first_with_flash ? &aten_flash() : nullptr,
      .new_recorder = &gpu_recorder,
      .bf16_storage = DType::bf16,
      .own_kernels = gpu::has_gpu_kernels(),
      .grouped_products = has_grouped_products(gpus.generations[index])});
  return *found;
}

void* gpu_stream(int gpu) {
  const at::Device device(at::kCUDA, static_cast<at::DeviceIndex>(gpu));
  return c10::impl::getDeviceGuardImpl(at::kCUDA)
    ->getStream(device)
    .native_handle();
}

} // namespace troupe::models
