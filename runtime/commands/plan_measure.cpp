#include "runtime/commands/plan_measure.hpp"

#include "runtime/base/jsonl_file.hpp"
#include "runtime/base/temporary_folder.hpp"
#include "runtime/launch/launcher.hpp"
#include "runtime/launch/run_program.hpp"
#include "runtime/planner/recorded_steps.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

namespace troupe::runtime {

namespace fs = std::filesystem;

namespace {

std::optional<PlanCosts> costs_of(const fs::path& metrics) {
  auto steps = read_recorded_steps(metrics);
  if (steps.size() > 1)
    steps.erase(steps.begin()); // warm-up
  if (steps.empty())
    return std::nullopt;
  const auto median = [&](const std::string& name) {
    std::vector<double> numbers;
    for (const auto& step : steps)
      numbers.push_back(step.value(name));
    return median_of(std::move(numbers));
  };
  std::map<std::string, double> phases_s;
  for (const auto& [name, value] : steps.back().numbers())
    if (name.starts_with("timing_s/"))
      phases_s[name] = median(name);
  return PlanCosts{.step_s = median("timing_s/step"),
                   .idle_share = median("perf/idle_ratio"),
                   .moved_bytes = 1e9 * median("perf/moved_gb"),
                   .peak_bytes = 1e9 * median("perf/device_memory_gb"),
                   .process_bytes = 1e9 * median("perf/max_memory_gb"),
                   .prompt_tokens = median("prompt_length/mean"),
                   .response_tokens = median("response_length/mean"),
                   .longest_response_tokens = median("response_length/max"),
                   .phases_s = std::move(phases_s)};
}

} // namespace

MeasuredPlan measure_plan(const ConfigArguments& config,
                          const plans::ExecutionPlan& plan, int steps) {
  const auto scratch = scratch_folder("troupe-measure-");
  const auto& folder = scratch.path();
  const auto plan_file = folder / "plan.yaml";
  std::ofstream(plan_file) << plans::print(plan);
  std::vector<std::string> arguments = {user_program(), "train"};
  for (const auto& list : {config.files(), config.overrides()})
    arguments.insert(arguments.end(), list.begin(), list.end());
  for (const auto& word :
       {"plan=" + plan_file.string(), fmt::format("run.steps={}", steps + 1),
        "run.dir=" + folder.string(), std::string("run.name=run"),
        std::string("run.save_every=0")})
    arguments.push_back(word);
  const auto log = folder / "log";
  MeasuredPlan measured;
  const auto metrics = folder / "run" / "metrics.jsonl";
  const auto exit = run_program(
    {.name = "train", .argv = std::move(arguments), .output_file = log});
  if (exit->code != 0 || exit->signal != 0)
    measured.why = last_line(log);
  else if (fs::exists(metrics))
    measured.costs = costs_of(metrics);
  if (!measured.costs && measured.why.empty())
    measured.why = "the run wrote no metrics";
  return measured;
}

} // namespace troupe::runtime
