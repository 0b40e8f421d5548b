// What `plan: auto` means for a run: a search over what this version runs, on
// this machine as `troupe profile` measured it (its file in the user's cache),
// else as a few seconds of measuring find it now.
#pragma once

#include "config/model_shape.hpp"
#include "plans/plan_problem.hpp"
#include "plans/step_graph.hpp"
#include "runtime/cluster_choice.hpp"
#include "runtime/profiler.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe::runtime {

/// Where `troupe profile` leaves a copy of what it measured:
/// $XDG_CACHE_HOME/troupe/hardware.yaml, else ~/.cache/troupe/hardware.yaml;
/// empty without a home.
std::filesystem::path cached_hardware_file();
/// Writes it there; false where there is no such place.
bool cache_profile(const MachineProfile& profile);
/// What a hardware file holds.
std::string print(const MachineProfile& profile);

/// The run as the cost model sees it on such a machine.
plans::PlanProblem run_problem(const Settings& settings,
                               const plans::Workflow& workflow,
                               const std::map<std::string, ModelShape>& shapes,
                               const plans::Cluster& cluster,
                               const MachineProfile& machine);

/// The same on this machine as it was measured; nothing where it was not.
/// ConfigError for a broken file.
std::optional<plans::PlanProblem>
profiled_problem(const Settings& settings, const plans::Workflow& workflow,
                 const std::map<std::string, ModelShape>& shapes,
                 const plans::Cluster& cluster);

/// Predicted seconds by task of `graph`, a step of `plan`: what shapes the
/// order in which devices run their tasks. By the shipped laptop's numbers
/// where this machine was not measured.
std::vector<double> predicted_task_seconds(
  const Settings& settings, const plans::Workflow& workflow,
  const std::map<std::string, ModelShape>& shapes,
  const plans::ExecutionPlan& plan, const plans::StepGraph& graph);

/// What becomes of numbers that a search had to measure first.
enum class MeasuredNow : std::uint8_t {
  is_kept,      ///< in the user's cache, for the next run
  is_forgotten, ///< a dry run writes nothing
};

/// The best plan found and, in `why`, whose numbers say so, its step time, its
/// bound and what the three next best lose. PlanError if nothing fits.
ChosenPlan search_for_run(const Settings& settings,
                          const plans::Workflow& workflow,
                          const std::map<std::string, ModelShape>& shapes,
                          const plans::Cluster& cluster,
                          MeasuredNow measured = MeasuredNow::is_kept);

} // namespace troupe::runtime
