#include "runtime/prepare/planned_work.hpp"

#include "runtime/base/jsonl_file.hpp"
#include "runtime/planner/user_plan.hpp"
#include "runtime/planning/device_memory.hpp"
#include "runtime/planning/machine_hardware.hpp"
#include "runtime/planning/resolve_cluster.hpp"
#include "runtime/run_folder/check_workflow_calls.hpp"
#include "runtime/run_folder/context_limits.hpp"
#include "runtime/run_folder/run_folder.hpp"
#include "runtime/run_folder/session_inputs.hpp"

#include <utility>

namespace troupe::runtime {

namespace fs = std::filesystem;

namespace {

std::uint32_t samples_per_step(const Settings& settings,
                               const plans::Workflow& workflow) {
  const auto rows = static_cast<std::uint32_t>(settings.data.batch_size);
  return workflow.samples_are_prompts
           ? rows * static_cast<std::uint32_t>(settings.rollout.n)
           : rows;
}

plans::PlanReport report_on(const PlannedWork& work,
                            const plans::ExecutionPlan& plan) {
  auto context = plans::make_check_context(
    work.settings, work.workflow, plan,
    device_memory_bytes(work.settings, plan.cluster.devices_per_node));
  context.shapes = work.shapes;
  return plans::check_plan(context);
}

/// Returns the preset like the plan commands without --hardware: it depends on
/// the memory of this machine's devices, not on how fast they are.
plans::ExecutionPlan preset_for_run(const PlannedWork& work,
                                    const plans::Cluster& cluster) {
  const auto problem = run_problem(
    work.settings, work.workflow, work.shapes, cluster,
    {.hardware = machine_hardware(work.settings, cluster.devices_per_node),
     .table = {}});
  return plans::fitted_preset(work.settings.plan, problem);
}

/// Returns the lags of the plan that the run had so far, if it has begun and
/// `algorithm.max_lag` lets searches choose them.
std::optional<PlanLags> lags_so_far(const Settings& settings,
                                    const fs::path& old_plan) {
  std::error_code ignored;
  if (max_lag_of(settings) == 0 || old_plan.empty()
      || !fs::exists(old_plan, ignored))
    return std::nullopt;
  return plans::parse_plan(read_file(old_plan), old_plan.string()).lag;
}

} // namespace

PlannedWork plan_work(const Settings& settings, MeasuredNow measured) {
  PlannedWork work;
  work.settings = settings;
  work.settings.cluster.device = device_kind(settings);
  work.workflow = known_workflow(settings);
  work.shapes = read_shapes(settings, work.workflow);
  check_allowed_lengths(settings, work.workflow, work.shapes);
  work.samples_per_step = samples_per_step(settings, work.workflow);
  const bool reuses = settings.run.resume != "fresh";
  const auto old_plan
    = reuses ? RunFolder(run_folder_of(settings)).plan_file() : fs::path{};
  auto chosen = choose_plan(
    settings, work.workflow, old_plan,
    [&](const auto& plan) { return report_on(work, plan).ok(); },
    [&](const plans::Cluster& cluster) {
      return preset_for_run(work, cluster);
    },
    [&](const plans::Cluster& cluster) {
      return search_for_run(work.settings, work.workflow, work.shapes, cluster,
                            measured, lags_so_far(settings, old_plan));
    });
  work.plan = std::move(chosen.plan);
  work.plan_name = std::move(chosen.name);
  work.plan_why = std::move(chosen.why);
  work.settings = with_cluster(settings, work.plan.cluster);
  work.report = report_on(work, work.plan);
  return work;
}

fs::path run_folder_of(const Settings& settings) {
  return fs::path(settings.run.dir) / settings.run.name;
}

DType saved_dtype(const PlannedWork& work, const std::string& role) {
  const auto& wanted = work.settings.models.at(role).save_dtype;
  if (wanted == "auto")
    return work.shapes.at(role).stored_dtype;
  return wanted == "bf16" ? DType::bf16 : DType::f32;
}

} // namespace troupe::runtime
