// Maps the master's report of a step to metric names (docs/interface.md). Pure:
// a value in, numbers out.
#pragma once

#include "actors/master/step_report.hpp"
#include "runtime/metrics/step_metrics.hpp"
#include "runtime/prepare/prepared_run.hpp"

#include <cstdint>
#include <vector>

namespace troupe::runtime {

StepMetrics name_step(const PreparedRun& run, const actors::StepReport& report);

/// Returns the tokens of each row of data.ptx that the step trained on.
std::vector<std::uint32_t> text_tokens(const PreparedRun& run, StepId step);

/// Maps the report of an evaluation after so many steps: val-core/*,
/// timing_s/testing.
StepMetrics name_evaluation(const PreparedRun& run,
                            const actors::StepReport& report);

} // namespace troupe::runtime
