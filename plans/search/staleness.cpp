#include "plans/search/staleness.hpp"

#include "config/base/clock.hpp"
#include "config/base/error.hpp"
#include "plans/search/refined_plans.hpp"
#include "plans/simulate/simulator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace troupe::plans {

namespace {

bool is_stopped(const SearchOptions& options) {
  return options.stop && options.stop->load();
}

/// The search of one staleness.
struct Searched {
  std::uint32_t steps = 0;
  SearchOptions options = {};
  std::optional<SearchResult> found = {}; ///< empty: no plan fits
};

/// Finds the best plan of each staleness. A walk does not find what branch and
/// bound or another walk has found, so each staleness tries the plans of the
/// others too; without a lag the search needs no help.
class StalenessSearches {
public:
  StalenessSearches(const PlanProblem& problem, const CostModel& costs,
                    const SearchOptions& options)
    : problem_(problem),
      costs_(costs),
      planned_(costs.with_planned_moves()),
      options_(options) {}

  StalenessSearch run(const std::vector<std::uint32_t>& all) {
    options_.seconds /= static_cast<double>(all.size());
    for (const auto steps : all) {
      if (steps > 0 && is_stopped(options_))
        break;
      searched_.push_back(search(steps));
    }
    const auto alone = searched_;
    for (auto& one : searched_)
      for (const auto& other : alone)
        if (one.steps > 0 && other.found)
          try_plans(one, other);
    return chosen();
  }

private:
  Searched search(std::uint32_t steps) const {
    Searched one{.steps = steps, .options = options_};
    one.options.lag = lag_of_generation(problem_.workflow, steps);
    if (steps > 0 && options_.method == SearchMethod::exact)
      one.options.method = SearchMethod::automatic;
    try {
      one.found = find_plan(problem_, costs_, one.options);
    } catch (const PlanError&) {
      if (steps == 0)
        throw;
    }
    return one;
  }

  /// Lets the other's best plan lag as far as this staleness, whole and in
  /// slices.
  void try_plans(Searched& one, const Searched& other) const {
    const auto& best = other.found->best.plan;
    if (one.steps != other.steps)
      try_plan(one, {.origin = fmt::format("plan of staleness {}", other.steps),
                     .plan = ahead_in_slices(problem_.workflow, best,
                                             {one.steps, /*slices=*/1})});
    for (const auto more : staleness_up_to(one.steps))
      if (more > 0)
        try_plan(one,
                 {.origin = fmt::format("plan of staleness {} in {} slices",
                                        other.steps, more + 1),
                  .plan = ahead_in_slices(problem_.workflow, best,
                                          {one.steps, more + 1})});
  }

  void try_plan(Searched& one, FoundPlan plan) const {
    if (!check_plan(problem_, plan.plan).ok())
      return;
    plan.step_s = simulate_step_s(problem_, planned_, plan.plan);
    if (!one.found)
      one.found = SearchResult{.best = plan, .lower_bound_s = plan.step_s};
    auto& found = *one.found;
    if (plan.step_s >= found.best.step_s)
      return;
    found.history.push_back(
      fmt::format("{}: {:.4g} s with this one", plan.origin, plan.step_s));
    found.next.insert(found.next.begin(), std::move(found.best));
    found.next.resize(std::min(found.next.size(), std::size_t{3}));
    found.lower_bound_s = std::min(found.lower_bound_s, plan.step_s);
    found.best = std::move(plan);
  }

  /// Returns the fastest; of equal ones, the least stale.
  StalenessSearch chosen() {
    StalenessSearch result;
    for (auto& [steps, options, found] : searched_) {
      auto& tried = result.tried.emplace_back(Staleness{.steps = steps});
      if (!found)
        continue;
      tried.best = found->best;
      tried.lower_bound_s = found->lower_bound_s;
      if (steps > 0
          && found->best.step_s
               >= result.chosen.best.step_s * (1 - least_staleness_gain))
        continue;
      result.chosen = std::move(*found);
      result.options = options;
    }
    return result;
  }

  const PlanProblem& problem_;
  const CostModel& costs_;
  CostModel planned_;
  SearchOptions options_;
  std::vector<Searched> searched_;
};

} // namespace

std::map<std::string, std::uint32_t> lag_of_generation(const Workflow& workflow,
                                                       std::uint32_t steps) {
  std::map<std::string, std::uint32_t> lag;
  for (const auto& call : workflow.calls)
    if (steps > 0 && call.kind == CallKind::generate
        && workflow.role(call.role).changes())
      lag[call.name] = steps;
  return lag;
}

ExecutionPlan ahead_in_slices(const Workflow& workflow, ExecutionPlan plan,
                              StepsAhead ahead) {
  plan.lag = lag_of_generation(workflow, ahead.steps + 1 - ahead.slices);
  for (const auto& [call, steps] : lag_of_generation(workflow, ahead.steps)) {
    auto& placement = plan.calls.at(call);
    placement.slices = static_cast<int>(ahead.slices);
    if (ahead.slices > 1)
      placement.chunks = 1; // a call is in chunks or in slices
  }
  return plan;
}

std::vector<std::uint32_t> staleness_up_to(std::uint32_t max_lag) {
  std::vector<std::uint32_t> all = {0};
  for (std::uint32_t steps = 1; steps < max_lag; steps *= 2)
    all.push_back(steps);
  if (max_lag > 0)
    all.push_back(max_lag);
  return all;
}

StalenessSearch find_plan_within(const PlanProblem& problem,
                                 const CostModel& costs,
                                 const SearchOptions& options,
                                 std::uint32_t max_lag) {
  if (!options.lag.empty())
    return {.chosen = find_plan(problem, costs, options), .options = options};
  if (lag_of_generation(problem.workflow, 1).empty())
    max_lag = 0;
  const Stopwatch watch;
  auto found
    = StalenessSearches(problem, costs, options).run(staleness_up_to(max_lag));
  found.options.seconds = options.seconds;
  found.chosen.seconds = watch.seconds();
  if (is_stopped(options))
    found.chosen.end = SearchEnd::interrupted;
  return found;
}

} // namespace troupe::plans
