// Resolves `auto` in the cluster and the plan: how many devices and workers
// this machine provides for a run, and which plan it runs.
#pragma once

#include "config/settings/settings.hpp"
#include "net/base/gpus.hpp"
#include "plans/plan/execution_plan.hpp"
#include "plans/presets/presets.hpp"
#include "plans/workflow/workflow.hpp"
#include "runtime/planner/user_plan.hpp"

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace troupe::runtime {

/// Returns "gpu" or "cpu": `cluster.device`, or what exists. Throws ConfigError
/// if it requires GPUs and there are none, or if `auto` finds GPUs that cannot
/// be used: it does not take the CPU for them.
std::string device_kind(const Settings& settings);
/// Returns the same on a host with these GPUs.
std::string device_kind_among(const Settings& settings,
                              const net::GpuReport& gpus);

/// A plan and its origin.
struct ChosenPlan {
  plans::ExecutionPlan plan;
  std::string name; ///< "data_parallel (chosen by auto)", a file's name
  std::vector<std::string> why = {}; ///< for a searched plan
};

/// Makes the preset that the settings name, on that cluster.
using PresetMaker = std::function<plans::ExecutionPlan(const plans::Cluster&)>;

/// Reads the plan that the settings name, or chooses one.
///
/// `cluster.*: auto` follows the plan's own `cluster:` block if it has one;
/// else one node, one device and worker per GPU, or one CPU slot (a device that
/// computes on all cores) and one worker. Numbers in the settings that
/// contradict the plan are a PlanError. `plan: auto` takes the plan of
/// `old_plan` (a run's plan.yaml) if that has as many devices, else what
/// `search` finds for more than one device, else (or without it) the first
/// preset that `fits`: data_parallel, single. A preset that the settings name
/// comes from `make_preset`, else it is made without knowing the models and the
/// devices.
ChosenPlan
choose_plan(const Settings& settings, const plans::Workflow& workflow,
            const std::filesystem::path& old_plan,
            const std::function<bool(const plans::ExecutionPlan&)>& fits,
            const PresetMaker& make_preset = {},
            const std::function<ChosenPlan(const plans::Cluster&)>& search
            = {});

/// Returns the settings with every `auto` of the cluster replaced by the plan's
/// number and by the kind of device that exists, and `cluster.silence_s` by
/// whether workers are on other hosts. Throws ConfigError if `cluster.device`
/// requires GPUs and there are none.
Settings with_cluster(Settings settings, const plans::Cluster& cluster);

} // namespace troupe::runtime
