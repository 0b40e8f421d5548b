#include "plans/check/memory_hint.hpp"

#include "plans/check/plan_limits.hpp"
#include "plans/check/planned_memory.hpp"

#include <algorithm>

namespace troupe::plans::internal {

namespace {

std::uint64_t peak_bytes(const DeviceMemory& memory) {
  std::uint64_t most = 0;
  for (const auto& task : memory.tasks)
    most = std::max(most, task.bytes);
  return memory.resident_bytes() + most;
}

/// Returns whether the device has room for every task if training stores the
/// inputs of layers only.
bool fits_recomputed(const CheckContext& context, const Replicas& replicas,
                     Rank device) {
  if (context.sizes.recompute_activations)
    return false;
  auto recomputed = context;
  recomputed.sizes.recompute_activations = true;
  const auto devices = planned_memory(recomputed, replicas).devices;
  const auto found = std::ranges::find(devices, device, &DeviceMemory::device);
  return found != devices.end()
         && peak_bytes(*found) <= context.memory_of(device);
}

} // namespace

std::string memory_hint(const CheckContext& context, const Replicas& replicas,
                        const DeviceMemory& memory, const DevicePeak& peak) {
  const auto of_cache = cache_hint(context, memory, peak.at_task);
  if (!of_cache.empty())
    return of_cache;
  if (fits_recomputed(context, replicas, peak.device))
    return "algorithm.recompute=true";
  if (memory.server_bytes > 0)
    return "devices of its own for generation, or a smaller share of the "
           "memory in rollout.server_command";
  return sharding_hint(context, peak.device)
         + "fewer calls on it or a smaller micro_batch_tokens";
}

} // namespace troupe::plans::internal
