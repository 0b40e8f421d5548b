// Plan commands print plan files: for every workflow the text reads back as the
// same plan, and the check that a run makes takes it.
#include "config/base/error.hpp"
#include "plans/presets/presets.hpp"
#include "plans/search/staleness.hpp"

#include <gtest/gtest.h>

#include "tests/support/plans/problem_support.hpp"

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe::plans {
namespace {

using Change = std::function<void(Settings&)>;

void dynamic_sampling(Settings& settings) {
  settings.algorithm.advantage = "group";
  settings.algorithm.kl_in = "none";
  settings.algorithm.group.rounds = 3;
  settings.rollout.n = 4;
}

/// Returns every workflow, and those that settings add functions to.
std::vector<std::pair<std::string, Change>> all_workflows() {
  return {
    {"sft", {}},
    {"reward", {}},
    {"dpo", {}},
    {"kto", {}},
    {"ppo", {}},
    {"ppo",
     [](Settings& settings) {
       settings.reward.kind = "rule";
       settings.algorithm.old_logprobs = "recompute";
     }},
    {"distillation", {}},
    {"grpo",
     [](Settings& settings) {
       settings.algorithm.advantage = "group";
       settings.algorithm.kl_in = "loss";
     }},
    {"grpo", dynamic_sampling},
    {"grpo",
     [](Settings& settings) {
       dynamic_sampling(settings);
       settings.reward.kind = "rule";
     }},
    {"grpo",
     [](Settings& settings) {
       dynamic_sampling(settings);
       settings.reward.kind = "python";
       settings.reward.long_response.mask_truncated = true;
     }},
  };
}

PlanProblem problem_of(const std::string& name, const Change& change) {
  Settings settings;
  settings.workflow = name;
  if (change)
    change(settings);
  auto problem = make_problem(shape_7b(), 1, 8, "h100x8");
  problem.workflow = make_workflow(settings);
  problem.sizes.group_size = static_cast<std::uint32_t>(settings.rollout.n);
  problem.shapes.clear();
  for (const auto& role : problem.workflow.roles) {
    problem.shapes[role.name] = shape_7b();
    problem.shapes[role.name].scalar_head = role.scalar_head;
    problem.dtypes[role.name] = DType::bf16;
  }
  return problem;
}

/// Returns "" if the printed plan reads back equal and passes the check.
std::string mistake_of(const PlanProblem& problem, const ExecutionPlan& plan) {
  const auto text = print(plan);
  const auto again = parse_plan(text, "printed.yaml");
  if (again != plan)
    return "another plan:\n" + text + print(again);
  const auto report = check_plan(problem, again);
  return report.ok() ? "" : mistake_line(report.errors.front()) + "\n" + text;
}

TEST(PrintedPlans, OfEveryWorkflowAreReadBackAndPass) {
  for (const auto& [name, change] : all_workflows()) {
    const auto problem = problem_of(name, change);
    const CostModel costs(problem);
    SearchOptions options{.iterations = 50};
    options.chunks = ChunkSearch::afterwards;
    EXPECT_EQ(
      mistake_of(problem, search_plan(problem, costs, options).best.plan), "")
      << name;
    EXPECT_EQ(mistake_of(problem, find_plan_within(problem, costs, options,
                                                   /*max_lag=*/1)
                                    .chosen.best.plan),
              "")
      << name;
  }
}

TEST(PrintedPlans, OfEveryPresetAreReadBackAndPass) {
  for (const auto& [name, change] : all_workflows()) {
    const auto problem = problem_of(name, change);
    for (const auto& preset : preset_names()) {
      std::optional<ExecutionPlan> plan;
      try {
        plan = fitted_preset(preset, problem);
      } catch (const PlanError&) { // not of this workflow
        continue;
      }
      const auto why = check_plan(problem, *plan).ok()
                         ? mistake_of(problem, *plan)
                         : std::string();
      EXPECT_EQ(why, "") << preset << " of " << name;
      EXPECT_EQ(parse_plan(print(*plan), "printed.yaml"), *plan);
    }
  }
}

} // namespace
} // namespace troupe::plans
