#include "config/error.hpp"
#include "config/settings.hpp"
#include "plans/plan_check.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::plans {

std::string why_not_run(const Strategy& strategy) {
  const Strategy runs{.dp = strategy.num_devices()};
  std::string_view what;
  if (strategy.tp > 1)
    what = "tensor parallelism (t)";
  else if (strategy.pp > 1)
    what = "pipeline parallelism (p)";
  else if (strategy.zero != Zero::none)
    what = "sharding (z)";
  else if (strategy.sequence_parallel)
    what = "sequence parallelism (s)";
  if (what.empty())
    return "";
  return fmt::format("{} comes with a later version, got {}; try {}", what,
                     to_string(strategy), to_string(runs));
}

CheckContext make_check_context(const Settings& settings,
                                const Workflow& workflow,
                                const ExecutionPlan& plan) {
  CheckContext context{.workflow = workflow, .plan = plan};
  auto& sizes = context.sizes;
  const auto positive = [](int number) {
    return static_cast<std::uint32_t>(std::max(number, 1));
  };
  sizes.samples_per_step = positive(settings.data.batch_size);
  sizes.max_sequence_tokens = settings.data.max_tokens;
  if (workflow.samples_are_prompts) {
    sizes.group_size = positive(settings.rollout.n);
    sizes.samples_per_step *= sizes.group_size;
    sizes.mini_batches = positive(settings.algorithm.mini_batches);
    sizes.max_sequence_tokens
      = settings.data.max_prompt_tokens + settings.rollout.max_new_tokens;
  }
  sizes.recompute_activations = settings.algorithm.recompute == "true";
  context.corrects_for_lag = settings.algorithm.old_logprobs == "rollout";
  return context;
}

void require_ok(const PlanReport& report) {
  if (report.ok())
    return;
  const auto& first = report.errors.front();
  const auto others = report.errors.size() - 1;
  throw PlanError(
    fmt::format("{}: {}{}", first.path, first.message,
                others == 0 ? "" : fmt::format(" (and {} more)", others)));
}

} // namespace troupe::plans
