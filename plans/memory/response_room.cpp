#include "plans/memory/response_room.hpp"

#include "config/settings/settings.hpp"

#include <algorithm>

namespace troupe::plans {

namespace {

/// Reserve of a GPU, 6.4 of 80 GB: half a gigabyte of the driver's context, one
/// or two of NCCL's buffers, library workspaces, and fragmentation.
constexpr double gpu_memory_reserve = 0.08;
/// Divisor of a CPU device's memory that limits `auto` caches: the host needs
/// memory for other things, and 64 responses seldom need more.
constexpr std::uint64_t host_cache_divisor = 4;
/// More responses at once do not make a CPU's products faster.
constexpr int host_responses_at_once = 64;

bool room_runs_on_gpu(const Settings& settings) {
  return settings.cluster.device == "gpu";
}

} // namespace

std::uint64_t ResponseCall::bytes(std::uint32_t responses,
                                  std::uint32_t stage) const {
  auto place = placement;
  place.responses = responses;
  return active_bytes(CallKind::generate, shape, dtype, place, sizes, stage)
         + second.active_bytes(place, sizes, stage);
}

std::uint64_t ResponseCall::cache_bytes(std::uint32_t responses) const {
  constexpr std::uint32_t stage = 0; // has most layers
  return responses
         * cache_slot_elements(shape, placement.strategy, stage,
                               sizes.max_sequence_tokens)
         * size_bytes(stored_types(sizes.engine.storage, dtype).cache);
}

std::uint32_t ResponseCall::sequences(std::uint32_t responses) const {
  auto place = placement;
  place.responses = responses;
  return static_cast<std::uint32_t>(
    sequences_under_way(shape, dtype, place, sizes));
}

std::uint32_t ResponseCall::most() const {
  auto place = placement;
  place.responses = 0;
  return static_cast<std::uint32_t>(
    responses_under_way(shape, dtype, place, sizes));
}

std::uint32_t ResponseCall::all() const {
  auto free = sizes;
  free.max_sequences = 0;
  free.kv_cache_bytes = 0;
  return ResponseCall{shape, dtype, placement, free}.most();
}

std::vector<std::uint32_t> response_steps(std::uint32_t most) {
  std::vector<std::uint32_t> steps;
  const auto add = [&](std::uint64_t twice_rounds) {
    const auto responses = static_cast<std::uint32_t>(
      (2 * std::uint64_t{most} + twice_rounds - 1) / twice_rounds);
    if (steps.empty() || responses < steps.back())
      steps.push_back(responses);
  };
  for (std::uint64_t rounds = 1; steps.empty() || steps.back() > 1;
       rounds *= 2) {
    add(2 * rounds);
    add(3 * rounds);
  }
  return steps;
}

namespace {

bool responses_fit(const ResponseCall& call, std::uint32_t responses,
                   std::span<const std::uint64_t> free_by_stage) {
  for (std::uint32_t stage = 0; stage < free_by_stage.size(); ++stage)
    if (call.bytes(responses, stage) > free_by_stage[stage])
      return false;
  return true;
}

} // namespace

ResponseRoom response_room(const ResponseCall& call,
                           std::span<const std::uint64_t> free_by_stage) {
  auto responses = call.most();
  if (call.sizes.cache_adapts) {
    const auto steps = response_steps(responses);
    const auto first
      = std::ranges::partition_point(steps, [&](std::uint32_t step) {
          return !responses_fit(call, step, free_by_stage);
        });
    responses = first == steps.end() ? steps.back() : *first;
  }
  return {.responses = responses,
          .sequences = call.sequences(responses),
          .all = call.all(),
          .cache_bytes = call.cache_bytes(responses)};
}

std::uint32_t responses_that_fit(const ResponseCall& call,
                                 std::span<const std::uint64_t> free_by_stage) {
  std::uint32_t fitting = 0, beyond = call.most() + 1;
  while (beyond - fitting > 1) {
    const auto middle = fitting + (beyond - fitting) / 2;
    (responses_fit(call, middle, free_by_stage) ? fitting : beyond) = middle;
  }
  return fitting;
}

std::uint32_t most_responses_at_once(const Settings& settings) {
  const auto otherwise
    = room_runs_on_gpu(settings) ? 0 : host_responses_at_once;
  return static_cast<std::uint32_t>(
    settings.rollout.max_sequences.value_or(otherwise));
}

void set_response_limits(BatchSizes& sizes, const Settings& settings,
                         std::uint64_t usable) {
  const auto& gb = settings.rollout.kv_cache_gb;
  sizes.max_sequences = most_responses_at_once(settings);
  sizes.cache_adapts = !gb;
  if (gb)
    sizes.kv_cache_bytes = static_cast<std::uint64_t>(*gb * 1e9);
  else
    sizes.kv_cache_bytes
      = room_runs_on_gpu(settings) ? 0 : usable / host_cache_divisor;
}

std::uint64_t usable_bytes(const Settings& settings,
                           std::uint64_t device_bytes) {
  const auto& cluster = settings.cluster;
  const auto share = room_runs_on_gpu(settings)
                       ? cluster.reserves.device_memory.value_or(
                         cluster.reserves.memory.value_or(gpu_memory_reserve))
                       : cluster.reserves.memory.value_or(0.0);
  return device_bytes
         - static_cast<std::uint64_t>(share
                                      * static_cast<double>(device_bytes));
}

} // namespace troupe::plans
