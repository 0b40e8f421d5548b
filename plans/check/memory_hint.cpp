#include "plans/check/memory_hint.hpp"

#include "plans/check/plan_limits.hpp"
#include "plans/check/planned_memory.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::plans::internal {

namespace {

std::uint64_t peak_bytes(const DeviceMemory& memory) {
  std::uint64_t most = 0;
  for (const auto& task : memory.tasks)
    most = std::max(most, task.bytes);
  return memory.resident_bytes() + most;
}

/// Returns whether the device has room for every task.
bool fits(const CheckContext& context, const Replicas& replicas, Rank device) {
  const auto devices = planned_memory(context, replicas).devices;
  const auto found = std::ranges::find(devices, device, &DeviceMemory::device);
  return found != devices.end()
         && peak_bytes(*found) <= context.memory_of(device);
}

/// Returns the same if training stores the inputs of layers only.
bool fits_recomputed(const CheckContext& context, const Replicas& replicas,
                     Rank device) {
  if (context.sizes.recompute_activations)
    return false;
  auto recomputed = context;
  recomputed.sizes.recompute_activations = true;
  return fits(recomputed, replicas, device);
}

/// Returns "d2c4 for actor_train" if the device has room for every task once
/// the fullest one cuts its sequences over more dp ranks; else nothing.
std::string context_hint(const CheckContext& context, const DevicePeak& peak) {
  auto plan = context.plan;
  const auto* call = context.workflow.find_call(peak.at_task);
  const auto placed = plan.calls.find(peak.at_task);
  if (!call || placed == plan.calls.end())
    return "";
  auto& [name, placement] = *placed;
  auto& cp = placement.strategy.cp;
  const auto cut = context.with_plan(plan);
  for (cp *= 2; placement.strategy.dp % cp == 0; cp *= 2)
    if (call->kind != CallKind::generate
        && why_no_context(cut, *call, placement).empty()
        && fits(cut, replicas_of(context.workflow, plan), peak.device))
      return fmt::format("{} for {}", to_string(placement.strategy), name);
  return "";
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
  if (const auto cut = context_hint(context, peak); !cut.empty())
    return cut;
  return sharding_hint(context, peak.device)
         + "fewer calls on it or a smaller micro_batch_tokens";
}

} // namespace troupe::plans::internal
