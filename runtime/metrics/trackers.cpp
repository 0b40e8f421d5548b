#include "runtime/metrics/trackers.hpp"

#include "config/settings/settings.hpp"

namespace troupe::runtime {

std::vector<MetricsProgram>
trackers_of(const Settings& settings, const std::filesystem::path& run_folder) {
  const auto& wanted = settings.metrics;
  std::vector<MetricsProgram> programs;
  const auto add = [&](const char* name, const std::string& where,
                       std::string_view script) {
    if (!where.empty())
      programs.push_back({.name = std::string("metrics.") + name,
                          .argv = {"python3", "-c", std::string(script), where,
                                   settings.run.name, run_folder.string()}});
  };
  add("wandb", wanted.wandb, wandb_script());
  add("mlflow", wanted.mlflow, mlflow_script());
  return programs;
}

} // namespace troupe::runtime
