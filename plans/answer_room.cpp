#include "plans/answer_room.hpp"

#include "config/settings.hpp"

#include <algorithm>

namespace troupe::plans {

namespace {

/// Of GPUs: NCCL's buffers, what libraries take, fragmentation.
constexpr double gpu_memory_reserve = 0.08;
/// Of a CPU device's memory, the most that `auto` gives a cache: the host has
/// other things to do, and 64 answers seldom need it.
constexpr std::uint64_t host_cache_divisor = 4;
/// More answers at once make a CPU's products no faster.
constexpr int host_answers_at_once = 64;

bool room_runs_on_gpu(const Settings& settings) {
  return settings.cluster.device == "gpu";
}

} // namespace

std::uint64_t AnswerCall::bytes(std::uint32_t answers,
                                std::uint32_t stage) const {
  auto place = placement;
  place.answers = answers;
  return active_bytes(CallKind::generate, shape, dtype, place, sizes, stage);
}

std::uint64_t AnswerCall::cache_bytes(std::uint32_t answers) const {
  std::uint64_t slot = 0;
  for (std::uint32_t stage = 0; stage < placement.strategy.pp; ++stage)
    slot = std::max(slot, cache_slot_elements(shape, placement.strategy, stage,
                                              sizes.max_sequence_tokens));
  return answers * slot * size_bytes(stored_dtype(sizes, dtype));
}

std::uint32_t AnswerCall::most() const {
  auto place = placement;
  place.answers = 0;
  return static_cast<std::uint32_t>(
    answers_under_way(shape, dtype, place, sizes));
}

std::uint32_t AnswerCall::all() const {
  auto free = sizes;
  free.max_sequences = 0;
  free.kv_cache_bytes = 0;
  return AnswerCall{shape, dtype, placement, free}.most();
}

std::vector<std::uint32_t> answer_steps(std::uint32_t most) {
  std::vector<std::uint32_t> steps;
  const auto add = [&](std::uint64_t twice_rounds) {
    const auto answers = static_cast<std::uint32_t>(
      (2 * std::uint64_t{most} + twice_rounds - 1) / twice_rounds);
    if (steps.empty() || answers < steps.back())
      steps.push_back(answers);
  };
  for (std::uint64_t rounds = 1; steps.empty() || steps.back() > 1;
       rounds *= 2) {
    add(2 * rounds);
    add(3 * rounds);
  }
  return steps;
}

namespace {

bool answers_fit(const AnswerCall& call, std::uint32_t answers,
                 std::span<const std::uint64_t> free_by_stage) {
  for (std::uint32_t stage = 0; stage < free_by_stage.size(); ++stage)
    if (call.bytes(answers, stage) > free_by_stage[stage])
      return false;
  return true;
}

} // namespace

AnswerRoom answer_room(const AnswerCall& call,
                       std::span<const std::uint64_t> free_by_stage) {
  auto answers = call.most();
  if (call.sizes.cache_adapts) {
    const auto steps = answer_steps(answers);
    const auto first
      = std::ranges::partition_point(steps, [&](std::uint32_t step) {
          return !answers_fit(call, step, free_by_stage);
        });
    answers = first == steps.end() ? steps.back() : *first;
  }
  return {.answers = answers,
          .all = call.all(),
          .cache_bytes = call.cache_bytes(answers)};
}

std::uint32_t answers_that_fit(const AnswerCall& call,
                               std::span<const std::uint64_t> free_by_stage) {
  std::uint32_t fitting = 0, beyond = call.most() + 1;
  while (beyond - fitting > 1) {
    const auto middle = fitting + (beyond - fitting) / 2;
    (answers_fit(call, middle, free_by_stage) ? fitting : beyond) = middle;
  }
  return fitting;
}

std::uint32_t most_answers_at_once(const Settings& settings) {
  const auto otherwise = room_runs_on_gpu(settings) ? 0 : host_answers_at_once;
  return static_cast<std::uint32_t>(
    settings.rollout.max_sequences.value_or(otherwise));
}

void set_answer_limits(BatchSizes& sizes, const Settings& settings,
                       std::uint64_t usable) {
  const auto& gb = settings.rollout.kv_cache_gb;
  sizes.max_sequences = most_answers_at_once(settings);
  sizes.cache_adapts = !gb;
  if (gb)
    sizes.kv_cache_bytes = static_cast<std::uint64_t>(*gb * 1e9);
  else
    sizes.kv_cache_bytes
      = room_runs_on_gpu(settings) ? 0 : usable / host_cache_divisor;
}

std::uint64_t usable_bytes(const Settings& settings,
                           std::uint64_t device_bytes) {
  const auto otherwise = room_runs_on_gpu(settings) ? gpu_memory_reserve : 0.0;
  const auto share = settings.cluster.memory_reserve.value_or(otherwise);
  return device_bytes
         - static_cast<std::uint64_t>(share
                                      * static_cast<double>(device_bytes));
}

} // namespace troupe::plans
