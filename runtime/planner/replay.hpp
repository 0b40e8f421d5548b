// Makes the findings of `plan replay`: reads a run's settings, plan and
// metrics, fits the costs of its calls step by step, and simulates another plan
// with them.
#pragma once

#include "runtime/planner/plan_options.hpp"
#include "runtime/planner/replay_report.hpp"

#include <string>

namespace troupe::runtime {

struct ReplayArguments : PlanArguments {
  std::string run;   ///< its folder
  std::string other; ///< preset, plan file or auto; empty: see `replay`
  int nodes = 0;     ///< of the other plan's cluster; 0: as the run
  int lag = -1;      ///< of its generations; -1: as the plan has it
};

/// Replays a run under the other plan: the one that is named, or the run's own
/// with another lag, or the best that a search finds on those nodes with the
/// run's costs. Throws ConfigError for a folder that is no run, or words that
/// make no sense.
ReplayReport replay(const ReplayArguments& arguments);

} // namespace troupe::runtime
