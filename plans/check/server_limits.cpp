// The limits of plans for servers of another program: the tensor-parallel
// devices of each dp rank hold a whole model, hand its weights to one server,
// and check that server with it.
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

/// A server does not start if its cache does not hold the longest sequence.
std::string why_no_cache(const CheckContext& context, const Call& call,
                         const Strategy& strategy) {
  const auto shape = context.shapes.find(call.role);
  if (shape == context.shapes.end())
    return "";
  const auto dtype = context.dtypes.find(call.role);
  const auto tokens = server_cache_tokens(
    shape->second, dtype == context.dtypes.end() ? DType::f32 : dtype->second,
    strategy, context.sizes);
  const auto most
    = static_cast<std::uint64_t>(context.sizes.max_sequence_tokens);
  if (!tokens || *tokens >= most)
    return "";
  return expectation(
    fmt::format("a cache of servers for {} tokens, one prompt with its "
                "response",
                most),
    fmt::format("room for {}", *tokens),
    context.sizes.engine.serves_on_host
      ? "more VLLM_CPU_KVCACHE_SPACE in cluster.env"
      : "another option in rollout.server_command, or more devices per server");
}

} // namespace

std::string why_no_servers(const CheckContext& context, const Call& call,
                           const Placement& placement) {
  if (!context.servers || !generates(call))
    return "";
  const auto& strategy = placement.strategy;
  if (call.by.user_actor && strategy.tp > 1)
    return expectation("a strategy of d with samples that others lead "
                       "(rollout.engine)",
                       to_string(strategy),
                       fmt::format("d{}", placement.devices.size()));
  if (strategy.pp > 1 || cuts_weights(strategy))
    return expectation("a strategy of d and t (rollout.engine)",
                       to_string(strategy),
                       fmt::format("d{}", placement.devices.size()));
  const auto in_node = context.plan.cluster.devices_per_node;
  if (strategy.tp > in_node)
    return expectation("each server's devices in one node (rollout.engine)",
                       fmt::format("t{}", strategy.tp),
                       fmt::format("t{} or less", in_node));
  if (placement.slices > 1)
    return expectation("slices 1 with rollout.engine",
                       fmt::format("{}", placement.slices), "1");
  if (const auto why = why_no_cache(context, call, strategy); !why.empty())
    return why;
  const auto given = *context.servers;
  if (given == 0)
    return "";
  if (std::ranges::count_if(context.workflow.calls, generates) > 1)
    return expectation("one call that generates with rollout.servers",
                       "several", "rollout.server_command");
  if (given != strategy.dp)
    return expectation(
      fmt::format("d{}, a dp rank per address of rollout.servers", given),
      fmt::format("d{}", strategy.dp), fmt::format("strategy d{}", given));
  return "";
}

} // namespace troupe::plans::internal
