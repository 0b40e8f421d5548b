#include "models/gpu/gpu.hpp"

#include "config/base/error.hpp"
#include "models/gpu/aten_backend.hpp"
#include "models/gpu/fixed_order.hpp"
#include "models/gpu/flash_attention.hpp"
#include "models/gpu/gpu_graph_recorder.hpp"
#include "net/base/gpus.hpp"

#include <ATen/Context.h>
#include <c10/core/CachingDeviceAllocator.h>

#include <map>
#include <memory>
#include <mutex>

namespace troupe::models {

namespace {

constexpr int first_with_flash = 8; // Ampere

/// Allocates beside libtorch, which keeps what its operations have freed: that
/// is given back before a block is refused.
void* gpu_take(std::size_t size_bytes) {
  return net::take_gpu_memory(net::CudaRuntime::machine(), size_bytes, [] {
    c10::getDeviceAllocator(at::kCUDA)->emptyCache();
  });
}

/// Returns the memory of GPUs that have been found.
const net::BlockMemory* gpu_blocks() {
  static const net::BlockMemory memory = [] {
    net::BlockMemory with_room = *net::gpu_memory();
    with_room.take = gpu_take;
    return with_room;
  }();
  return &memory;
}

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
  const std::size_t gpu = device % gpus.names.size();
  found = std::make_unique<AtenBackend>(
    at::Device(at::kCUDA, static_cast<at::DeviceIndex>(gpu)), gpu_blocks(),
    gpus.generations[gpu] >= first_with_flash ? &aten_flash() : nullptr,
    &gpu_recorder);
  return *found;
}

} // namespace troupe::models
