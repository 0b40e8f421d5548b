// A plan that tests break before `plan check` reads it.
#pragma once

#include "plans/check/plan_check.hpp"

#include "tests/support/plans/support.hpp"

#include <functional>
#include <string>

namespace troupe::plans {

/// PPO on four devices, 64 samples per step in 4 mini-batches; `break_it`
/// changes the plan or the context.
struct CheckCase {
  Workflow workflow = make_ppo();
  ExecutionPlan plan = plan_apart(workflow);
  CheckContext context{
    .workflow = workflow,
    .plan = plan,
    .sizes
    = {.samples_per_step = 64, .mini_batches = 4, .max_sequence_tokens = 128}};
};

using BreakCase = std::function<void(CheckCase&)>;

inline PlanReport report_of(const BreakCase& break_it) {
  CheckCase one;
  break_it(one);
  return check_plan(one.context);
}

/// Returns the only error as "path: message", or all of them.
inline std::string broken(const BreakCase& break_it) {
  std::string text;
  for (const auto& mistake : report_of(break_it).errors)
    text += (text.empty() ? "" : "\n") + mistake.path + ": " + mistake.message;
  return text;
}

} // namespace troupe::plans
