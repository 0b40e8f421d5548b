// The cost of a layout of another system, the best one that the system can be
// told to run, and the best plan of all: predicted by the simulator and the
// search that plan our own runs.
#pragma once

#include "plans/advise/expressible.hpp"
#include "plans/search/search.hpp"
#include "plans/simulate/simulator.hpp"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace troupe::plans {

/// A layout, predicted.
struct PredictedLayout {
  SystemLayout layout = {};
  ExecutionPlan plan = {};
  std::string why_not = {}; ///< why it cannot run; empty: it can
  double step_s = 0;

  bool fits() const {
    return why_not.empty();
  }
};

/// Called now and then with a sentence about the work.
using AdviseProgress = std::function<void(const std::string&)>;

/// Predicts a layout in a problem whose cache is limited as the layout says.
PredictedLayout predict_layout(const PlanProblem& problem,
                               const SystemLayout& layout);

/// Returns the fastest layout that the recipe's system can express and that
/// fits, with the engine's share set to what its cache then takes; none: no
/// layout fits. `problem` has a cache that takes what a plan leaves free.
std::optional<PredictedLayout> best_expressible(const Recipe& recipe,
                                                const PlanProblem& problem,
                                                const AdviseProgress& progress);

/// Returns the problem with the cache of an engine that has a share of the
/// memory (0: without a limit).
PlanProblem with_cache(PlanProblem problem, double cache_bytes);

/// Returns the share of a device that the plan's engine takes: its weights and
/// cache, in hundredths, rounded up.
double engine_share(const PlanProblem& problem, const ExecutionPlan& plan);

/// Returns the reasons of a plan's idle time, the largest first: seconds of a
/// device per step, what it waits for, and what would remove it.
struct IdleReason {
  double seconds = 0;
  std::string what = {};
  std::string remedy = {};
};
std::vector<IdleReason> idle_reasons(const Simulation& run);
/// Return the reasons without seconds: rows of other calls, new weights, other
/// devices of the same call.
IdleReason dependency_reason();
IdleReason version_reason();
IdleReason device_reason();

} // namespace troupe::plans
