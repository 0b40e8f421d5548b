#include "plans/simulate/published_plans.hpp"

#include "config/base/error.hpp"
#include "config/settings/settings.hpp"
#include "plans/simulate/simulator.hpp"

#include <algorithm>
#include <exception>

namespace troupe::plans {

namespace {

/// Returns the recipes of a system. OpenRLHF's scripts have both; its tuning
/// guide recommends the second where memory allows.
std::vector<std::string> recipes_of(const std::string& name) {
  if (name == "openrlhf")
    return {"openrlhf", "openrlhf_colocated"};
  return {name};
}

} // namespace

BatchSizes published_sizes(BatchSizes sizes, const Settings& settings) {
  sizes.micro_batch_tokens = 32768;
  sizes.engine.packs_weights = false;
  sizes.engine.storage = StorageRule::published;
  sizes.recompute_activations = settings.algorithm.recompute != "false";
  return sizes;
}

CostEffects published_effects(const std::string& name) {
  if (name == "deepspeed_chat" || name == "flattening")
    return {.engine = Engine::deepspeed_chat};
  if (name.starts_with("openrlhf"))
    return {.engine = Engine::openrlhf};
  return {};
}

std::vector<ExecutionPlan> published_plans(const std::string& name,
                                           const PlanProblem& problem) {
  std::vector<ExecutionPlan> plans;
  std::exception_ptr refusal; // of the first recipe that does not fit
  for (const auto& recipe : recipes_of(name)) {
    try {
      auto plan = fitted_preset(recipe, problem);
      require_ok(check_plan(problem, plan));
      if (std::ranges::find(plans, plan) == plans.end())
        plans.push_back(std::move(plan));
    } catch (const PlanError&) {
      refusal = refusal ? refusal : std::current_exception();
    }
  }
  if (plans.empty())
    std::rethrow_exception(refusal);
  return plans;
}

ExecutionPlan published_plan(const std::string& name,
                             const PlanProblem& problem,
                             const CostModel& costs) {
  auto plans = published_plans(name, problem);
  return *std::ranges::min_element(plans, {}, [&](const ExecutionPlan& plan) {
    return simulate_step_s(problem, costs, plan);
  });
}

} // namespace troupe::plans
