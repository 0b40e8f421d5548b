// Resolves `plan: auto` of a run: a search over the plans that this version can
// run, on this machine as measured by `troupe profile` (its file in the user's
// cache), else as a few seconds of measuring find it now.
#pragma once

#include "config/model/model_shape.hpp"
#include "plans/cost/plan_problem.hpp"
#include "plans/schedule/step_graph.hpp"
#include "runtime/planning/profiler.hpp"
#include "runtime/planning/resolve_cluster.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe::runtime {

/// Returns where `troupe profile` stores a copy of its measurements of devices
/// of this kind: $XDG_CACHE_HOME/troupe/hardware.yaml, else
/// ~/.cache/troupe/hardware.yaml; of GPUs hardware_gpu.yaml beside it; empty
/// without a home.
std::filesystem::path cached_hardware_file(const std::string& device_kind);
/// Writes the profile there; returns false if there is no such place.
bool cache_profile(const MachineProfile& profile,
                   const std::string& device_kind);
/// Returns the contents of a hardware file.
std::string print(const MachineProfile& profile);

/// Returns the run as the cost model sees it on such a machine.
plans::PlanProblem run_problem(const Settings& settings,
                               const plans::Workflow& workflow,
                               const std::map<std::string, ModelShape>& shapes,
                               const plans::Cluster& cluster,
                               const MachineProfile& machine);

/// Returns the run on this machine as it was measured; nothing if it was not.
/// Throws ConfigError for a broken file.
std::optional<plans::PlanProblem>
profiled_problem(const Settings& settings, const plans::Workflow& workflow,
                 const std::map<std::string, ModelShape>& shapes,
                 const plans::Cluster& cluster);

/// Returns predicted seconds per task of `graph`, a step of `plan`: they
/// determine the order in which devices run their tasks. Uses shipped numbers
/// if this machine was not measured.
std::vector<double> predicted_task_seconds(
  const Settings& settings, const plans::Workflow& workflow,
  const std::map<std::string, ModelShape>& shapes,
  const plans::ExecutionPlan& plan, const plans::StepGraph& graph);

/// Treatment of numbers that a search had to measure first.
enum class MeasuredNow : std::uint8_t {
  is_kept,      ///< in the user's cache, for the next run
  is_forgotten, ///< a dry run writes nothing
};

/// Lags of a plan, by call.
using PlanLags = std::map<std::string, std::uint32_t>;

/// Returns the best plan found and, in `why`, the source of its numbers, its
/// step time, its bound, what the three next best lose, and what each staleness
/// up to `algorithm.max_lag` buys. A run that goes on keeps `lags_so_far`,
/// which change results. Throws PlanError if none fits.
ChosenPlan search_for_run(const Settings& settings,
                          const plans::Workflow& workflow,
                          const std::map<std::string, ModelShape>& shapes,
                          const plans::Cluster& cluster,
                          MeasuredNow measured = MeasuredNow::is_kept,
                          const std::optional<PlanLags>& lags_so_far = {});

} // namespace troupe::runtime
