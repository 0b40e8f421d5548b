#include "plans/search/plan_point.hpp"

#include "plans/memory/micro_batches.hpp"
#include "plans/weights/residency.hpp"

#include <algorithm>

namespace troupe::plans::internal {

namespace {

/// Returns whether an option of the space is the choice `wanted`. A call that
/// shares the replica of its home has the home's strategy in a plan.
bool is_choice(const SearchSpace::SpaceCall& call, const CallOption& option,
               const CallOption& wanted) {
  return option.kinds == wanted.kinds
         && SearchSpace::shares(option, 0, wanted, 0)
         && (call.reads_home() || option.strategy == wanted.strategy)
         && option.micro_batches == wanted.micro_batches
         && option.chunks == wanted.chunks && option.offload == wanted.offload;
}

} // namespace

std::optional<CallOption> option_of(const SearchSpace& space,
                                    const SearchSpace::SpaceCall& call,
                                    const ExecutionPlan& plan) {
  const auto found = plan.calls.find(call.call->name);
  if (found == plan.calls.end() || found->second.devices.empty())
    return std::nullopt;
  const auto& place = found->second;
  const auto first = place.devices.front().value;
  const auto count = static_cast<std::uint32_t>(place.devices.size());
  if (place.devices.back().value - first + 1 != count)
    return std::nullopt;
  CallOption option{.num_devices = count,
                    .kinds = space.kinds_at(first, count),
                    .strategy = place.strategy,
                    .micro_batches = place.micro_batches,
                    .chunks = place.chunks};
  const auto& problem = space.problem();
  if (place.micro_batch_tokens > 0 && call.call->kind != CallKind::generate)
    option.micro_batches
      = static_cast<int>(micro_batches_of(call.call->kind, place, problem.sizes,
                                          problem.lengths.sequence_mean())
                           .count);
  if (const auto role = plan.roles.find(call.call->role);
      role != plan.roles.end() && !call.reads_home())
    option.offload = used_by(*call.call, role->second);
  return option;
}

std::optional<SpacePoint> point_of(const SearchSpace& space,
                                   const ExecutionPlan& plan) {
  SpacePoint point;
  for (const auto& call : space.calls()) {
    const auto wanted = option_of(space, call, plan);
    if (!wanted)
      return std::nullopt;
    const auto found = std::ranges::find_if(call.options, [&](const auto& one) {
      return is_choice(call, one, *wanted);
    });
    const auto at = plan.calls.at(call.call->name).devices.front().value;
    if (found == call.options.end() || space.align(at, *found) != at)
      return std::nullopt;
    point.options.push_back(
      static_cast<std::uint32_t>(found - call.options.begin()));
    point.positions.push_back(at);
  }
  return point;
}

} // namespace troupe::plans::internal
