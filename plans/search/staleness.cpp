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

/// Finds the best plan of one staleness after the other.
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
      search(steps);
    }
    return std::move(result_);
  }

private:
  /// Searches plans of this staleness, and takes the best of them if it is
  /// faster than what was found before.
  void search(std::uint32_t steps) {
    auto options = options_;
    options.lag = lag_of_generation(problem_.workflow, steps);
    if (steps > 0 && options.method == SearchMethod::exact)
      options.method = SearchMethod::automatic;
    Staleness staleness{.steps = steps};
    try {
      auto found = find_plan(problem_, costs_, options);
      try_fresher_plans(found, options.lag);
      staleness.best = found.best;
      staleness.lower_bound_s = found.lower_bound_s;
      if (steps == 0
          || found.best.step_s
               < result_.chosen.best.step_s * (1 - least_staleness_gain)) {
        result_.chosen = std::move(found);
        result_.options = options;
      }
    } catch (const PlanError&) {
      if (steps == 0)
        throw;
    }
    result_.tried.push_back(std::move(staleness));
  }

  /// Lets the plans of smaller staleness lag so far: a walk does not find what
  /// branch and bound has found.
  void
  try_fresher_plans(SearchResult& found,
                    const std::map<std::string, std::uint32_t>& lag) const {
    for (const auto& fresher : result_.tried) {
      if (!fresher.best)
        continue;
      FoundPlan plan{.origin
                     = fmt::format("plan of staleness {}", fresher.steps),
                     .plan = fresher.best->plan};
      plan.plan.lag = lag;
      if (!check_plan(problem_, plan.plan).ok())
        continue;
      plan.step_s = simulate_step_s(problem_, planned_, plan.plan);
      if (plan.step_s >= found.best.step_s)
        continue;
      found.history.push_back(
        fmt::format("{}: {:.4g} s with this one", plan.origin, plan.step_s));
      found.next.insert(found.next.begin(), std::move(found.best));
      found.next.resize(std::min(found.next.size(), std::size_t{3}));
      found.lower_bound_s = std::min(found.lower_bound_s, plan.step_s);
      found.best = std::move(plan);
    }
  }

  const PlanProblem& problem_;
  const CostModel& costs_;
  CostModel planned_;
  SearchOptions options_;
  StalenessSearch result_;
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
