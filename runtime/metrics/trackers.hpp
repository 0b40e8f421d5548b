// metrics.wandb and metrics.mlflow: the scripts of examples/metrics, which the
// build puts into the program, as programs that get each line of metrics.jsonl.
#pragma once

#include "runtime/metrics/metrics_command.hpp"

#include <filesystem>
#include <string_view>
#include <vector>

namespace troupe {
struct Settings;
} // namespace troupe

namespace troupe::runtime {

/// Returns the programs of the trackers that the settings name.
std::vector<MetricsProgram>
trackers_of(const Settings& settings, const std::filesystem::path& run_folder);

/// Returns the text of examples/metrics/to_wandb.py. Made by the build.
std::string_view wandb_script();
/// Returns the text of examples/metrics/to_mlflow.py. Made by the build.
std::string_view mlflow_script();

} // namespace troupe::runtime
