// Seconds a step of a preset on this machine: runs the program itself for a few
// steps, in a folder of its own that goes afterwards, and reads its metrics.
#pragma once

#include "runtime/verbs/verb.hpp"

#include <optional>
#include <string>

namespace troupe::runtime {

struct MeasuredPlan {
  std::optional<double> step_s; ///< median after the first step
  std::string why = {};         ///< where there is none: the run's last line
};

MeasuredPlan measure_plan(const ConfigWords& config, const std::string& preset,
                          int steps);

} // namespace troupe::runtime
