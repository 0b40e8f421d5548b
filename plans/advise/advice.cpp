#include "plans/advise/advice.hpp"

#include "config/base/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace troupe::plans {

namespace {

/// Returns the first reason why a plan cannot run; empty: it can.
std::string reason_against(const PlanReport& report) {
  if (report.ok())
    return "";
  const auto& first = report.errors.front();
  return first.path + ": " + first.message;
}

/// Returns whether layouts cut the same devices in the same way.
bool same_cut(const SystemLayout& a, const SystemLayout& b) {
  return a.generation.first == b.generation.first
         && a.generation.strategy == b.generation.strategy
         && a.actor.first == b.actor.first
         && a.actor.strategy == b.actor.strategy
         && a.critic.first == b.critic.first
         && a.critic.strategy == b.critic.strategy;
}

} // namespace

PredictedLayout predict_layout(const PlanProblem& problem,
                               const SystemLayout& layout) {
  PredictedLayout predicted{
    .layout = layout,
    .plan = plan_of(layout, problem.workflow, problem.cluster)};
  predicted.why_not = reason_against(check_plan(problem, predicted.plan));
  if (predicted.fits())
    predicted.step_s
      = simulate_step_s(problem, CostModel(problem), predicted.plan);
  return predicted;
}

std::optional<PredictedLayout>
best_expressible(const Recipe& recipe, const PlanProblem& problem,
                 const AdviseProgress& progress) {
  const auto layouts = layouts_of(recipe, problem);
  const CostModel costs(problem);
  std::optional<PredictedLayout> best;
  // on many devices memory is seldom short, and there is much to simulate
  constexpr std::uint32_t many_devices = 64;
  const bool is_large = problem.cluster.num_devices() > many_devices;
  const SystemLayout* fitting = nullptr; // the last one that does
  constexpr std::size_t report_every = 64;
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    if (i % report_every == 0)
      progress(fmt::format("layout {} of {} of {}", i + 1, layouts.size(),
                           to_string(recipe.system)));
    PredictedLayout one{
      .layout = layouts[i],
      .plan = plan_of(layouts[i], problem.workflow, problem.cluster)};
    if (is_large && fitting && same_cut(*fitting, layouts[i]))
      continue;
    if (!check_plan(problem, one.plan).ok())
      continue;
    fitting = &layouts[i];
    one.step_s = simulate_step_s(problem, costs, one.plan);
    if (!best || one.step_s < best->step_s)
      best = std::move(one);
  }
  if (best)
    best->layout.engine_share = engine_share(problem, best->plan);
  return best;
}

PlanProblem with_cache(PlanProblem problem, double cache_bytes) {
  problem.sizes.cache_adapts = cache_bytes <= 0;
  problem.sizes.kv_cache_bytes
    = static_cast<std::uint64_t>(std::max(0.0, cache_bytes));
  return problem;
}

double engine_share(const PlanProblem& problem, const ExecutionPlan& plan) {
  const auto report = check_plan(problem, plan);
  double most = 0;
  for (const auto& [name, room] : report.rooms) {
    const auto* call = problem.workflow.find_call(name);
    const auto placed = plan.calls.find(name);
    if (!call || placed == plan.calls.end())
      continue;
    const auto& strategy = placed->second.strategy;
    const auto weights
      = static_cast<double>(weight_bytes(problem.shapes.at(call->role),
                                         problem.dtype(call->role)))
        / (strategy.tp * strategy.pp);
    most = std::max(most, weights + static_cast<double>(room.cache_bytes));
  }
  const auto memory = problem.hardware.mem_bytes;
  return memory > 0 ? std::min(0.95, std::ceil(100 * most / memory) / 100)
                    : 0.9;
}

IdleReason dependency_reason() {
  return {.what = "rows of calls on other devices",
          .remedy = "more devices for the calls on the critical path, or calls "
                    "in chunks"};
}

IdleReason version_reason() {
  return {.what = "new weights after training",
          .remedy = "a generation that lags one step, or fewer bytes to move"};
}

IdleReason device_reason() {
  return {.what = "other devices of the same call",
          .remedy = "meshes that begin and end together"};
}

std::vector<IdleReason> idle_reasons(const Simulation& run) {
  std::vector<IdleReason> reasons
    = {dependency_reason(), version_reason(), device_reason()};
  reasons[0].seconds = run.idle.dependency_s;
  reasons[1].seconds = run.idle.version_s;
  reasons[2].seconds = run.idle.device_s;
  // less is what rounding leaves of sums of long times
  std::erase_if(reasons, [&](const IdleReason& reason) {
    return reason.seconds <= 1e-6 * run.step_s;
  });
  std::ranges::sort(reasons, std::ranges::greater{}, &IdleReason::seconds);
  return reasons;
}

} // namespace troupe::plans
