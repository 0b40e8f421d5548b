// The limits of plans for servers of another program: each device of the call
// holds the whole model, hands its weights to one server, and checks that
// server with it.
#include "config/base/error.hpp"
#include "plans/check/plan_limits.hpp"
#include "plans/weights/gather_buffers.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::plans::internal {

namespace {

bool generates(const Call& call) {
  return call.kind == CallKind::generate && !call.evaluates;
}

} // namespace

std::string why_no_servers(const CheckContext& context, const Call& call,
                           const Placement& placement) {
  if (!context.servers || !generates(call))
    return "";
  const auto& strategy = placement.strategy;
  if (strategy.tp * strategy.pp > 1 || cuts_weights(strategy))
    return expectation("the whole model on each device (rollout.engine)",
                       to_string(strategy),
                       fmt::format("d{}", placement.devices.size()));
  if (placement.slices > 1)
    return expectation("slices 1 with rollout.engine",
                       fmt::format("{}", placement.slices), "1");
  const auto given = *context.servers;
  if (given == 0)
    return "";
  if (std::ranges::count_if(context.workflow.calls, generates) > 1)
    return expectation("one call that generates with rollout.servers",
                       "several", "rollout.server_command");
  if (given != placement.devices.size())
    return expectation(
      fmt::format("{} devices, one per address of rollout.servers", given),
      fmt::format("{}", placement.devices.size()),
      fmt::format("strategy d{}", given));
  return "";
}

} // namespace troupe::plans::internal
