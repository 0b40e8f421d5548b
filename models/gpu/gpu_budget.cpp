#include "models/gpu/gpu_budget.hpp"

#include "config/base/error.hpp"

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/util/Exception.h>

#include <algorithm>

#ifdef TROUPE_CUDA_BUILD
#include "net/base/gpus.hpp"

#include <c10/cuda/CUDACachingAllocator.h>
#endif

namespace troupe::models {

namespace {

c10::DeviceAllocator& gpu_allocations() {
  return *c10::getDeviceAllocator(c10::DeviceType::CUDA);
}

} // namespace

#ifdef TROUPE_CUDA_BUILD
void limit_gpu_memory(int gpu, std::uint64_t bytes) {
  const auto total
    = net::find_gpus().memory_bytes.at(static_cast<std::size_t>(gpu));
  const double share = static_cast<double>(bytes) / static_cast<double>(total);
  c10::cuda::CUDACachingAllocator::setMemoryFraction(
    std::min(1.0, share), static_cast<c10::DeviceIndex>(gpu));
}
#else
void limit_gpu_memory(int /*gpu*/, std::uint64_t /*bytes*/) {}
#endif

void begin_gpu_peak(int gpu) {
  gpu_allocations().resetPeakStats(static_cast<c10::DeviceIndex>(gpu));
}

std::uint64_t gpu_peak_bytes(int gpu) {
  const auto stats
    = gpu_allocations().getDeviceStats(static_cast<c10::DeviceIndex>(gpu));
  constexpr auto all
    = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  return static_cast<std::uint64_t>(stats.allocated_bytes[all].peak);
}

void release_kept_gpu_memory() {
  gpu_allocations().emptyCache();
}

std::string out_of_memory_text(const std::exception& error) {
  if (const auto* known = dynamic_cast<const FailureError*>(&error))
    return known->failure().code == Errc::out_of_memory ? error.what() : "";
  const auto* full = dynamic_cast<const c10::OutOfMemoryError*>(&error);
  return full != nullptr ? full->what_without_backtrace() : "";
}

} // namespace troupe::models
