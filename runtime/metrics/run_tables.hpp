// Tables that `train` prints before it starts: what the user set, how the batch
// is split, the plan as it will run, including derived numbers that would have
// to be computed by hand otherwise.
#pragma once

#include "runtime/prepare/prepared_run.hpp"

#include <string>

namespace troupe::runtime {

/// Returns a line per setting that differs from its default; config.yaml has
/// the rest.
std::string settings_table(const Settings& settings);
/// Returns rows, samples, mini-batches, samples per dp rank, tokens and
/// optimizer steps.
std::string batch_table(const PreparedRun& run);
/// Returns a line per call: kind, devices, strategy, lag; then replicas and
/// devices.
std::string plan_table(const PlannedWork& work);
/// Returns the tables with the resolved settings as one document (`train
/// --json`).
std::string tables_json(const PreparedRun& run);

} // namespace troupe::runtime
