#include "plans/search/context_degrees.hpp"

#include "plans/plan/strategy_rules.hpp"
#include "plans/workflow/context_share.hpp"

#include <algorithm>

namespace troupe::plans {

namespace {

/// Returns whether one sequence of the greatest length takes more than half of
/// a device besides the planes of its model.
bool fills_devices(const PlanProblem& problem, const Call& call,
                   const Placement& place, std::uint64_t memory_bytes) {
  const auto active = active_bytes(call.kind, problem.shapes.at(call.role),
                                   problem.dtype(call.role), place,
                                   sizes_of(call, problem.sizes));
  return active > memory_bytes / 2;
}

} // namespace

std::uint32_t samples_of(const PlanProblem& problem, const Call& call) {
  const auto& sizes = problem.sizes;
  return call.kind == CallKind::train
           ? sizes.samples_per_step / std::max(1u, sizes.mini_batches)
           : sizes.samples_per_step;
}

std::set<std::uint32_t> context_degrees(const PlanProblem& problem,
                                        const Call& call, Placement whole,
                                        std::uint64_t memory_bytes) {
  const auto dp = whole.strategy.dp;
  const auto most = most_context_ranks(problem.sizes.max_sequence_tokens);
  std::set<std::uint32_t> degrees = {1};
  if (call.kind == CallKind::generate || dp == 1 || most == 1
      || !why_illegal(whole.strategy, problem.shapes.at(call.role)).empty())
    return degrees;
  const auto samples = samples_of(problem, call);
  whole.micro_batches = static_cast<int>(std::max(1u, samples / dp));
  if (dp <= samples && !fills_devices(problem, call, whole, memory_bytes))
    return degrees;
  for (std::uint32_t cp = 2; cp <= std::min(dp, most); cp *= 2)
    if (dp % cp == 0)
      degrees.insert(cp);
  return degrees;
}

} // namespace troupe::plans
