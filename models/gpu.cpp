#include "models/gpu.hpp"

#include "config/error.hpp"
#include "models/aten_compute.hpp"
#include "models/fixed_order.hpp"
#include "models/flash_attention.hpp"
#include "models/gpu_recorder.hpp"
#include "net/gpus.hpp"

#include <ATen/Context.h>

#include <map>
#include <memory>
#include <mutex>

namespace troupe::models {

namespace {

constexpr int first_with_flash = 8; // Ampere

} // namespace

Compute& gpu_compute(std::uint32_t device) {
  static std::mutex mutex;
  static std::map<std::uint32_t, std::unique_ptr<AtenCompute>> known;
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
  const std::size_t gpu = device % gpus.names.size();
  found = std::make_unique<AtenCompute>(
    at::Device(at::kCUDA, static_cast<at::DeviceIndex>(gpu)), net::gpu_memory(),
    gpus.generations[gpu] >= first_with_flash ? &aten_flash() : nullptr,
    &gpu_recorder);
  return *found;
}

} // namespace troupe::models
