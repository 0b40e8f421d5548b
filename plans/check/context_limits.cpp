// The limits of plans that cut the tokens of samples (context parallelism),
// besides those of a strategy alone.
#include "config/base/error.hpp"
#include "plans/check/plan_limits.hpp"
#include "plans/workflow/context_share.hpp"

#include <fmt/format.h>

namespace troupe::plans {

namespace {

/// Returns the same strategy for at most `most` ranks a sequence.
Strategy with_context(Strategy strategy, std::uint32_t most) {
  while (strategy.cp > most || strategy.dp % strategy.cp != 0)
    --strategy.cp;
  return strategy;
}

} // namespace

std::string internal::why_no_context(const CheckContext& context,
                                     const Call& call,
                                     const Placement& placement) {
  const auto& strategy = placement.strategy;
  if (strategy.cp == 1)
    return "";
  if (call.kind == CallKind::train
      && context.balanced_roles.contains(call.role))
    return expectation("no context parallelism (c) with router_aux_loss_coef, "
                       "which needs whole sequences",
                       to_string(strategy),
                       to_string(with_context(strategy, 1)));
  const auto longest = context.sizes.max_sequence_tokens;
  const auto most = most_context_ranks(longest);
  if (strategy.cp <= most)
    return "";
  return expectation(
    fmt::format("at most c{}, for {} tokens of the longest sequence, which has "
                "{}, on each rank",
                most, least_context_tiles * context_tile_rows, longest),
    to_string(strategy), to_string(with_context(strategy, most)));
}

} // namespace troupe::plans
