#include "runtime/commands/control_fit.hpp"

#include "plans/cost/plan_problem.hpp"
#include "plans/plan/strategy_rules.hpp"
#include "plans/simulate/simulator.hpp"
#include "runtime/planner/phase_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

namespace troupe::runtime {

namespace {

using plans::CallKind;
using plans::ProfileOp;

/// Range of the factor by which work takes longer in a run; beyond it something
/// else is wrong.
constexpr double least_times = 0.7, most_times = 2;
/// Smallest share of a link's rate alone that remains beside work.
constexpr double least_share = 0.05;
constexpr double at_once = std::numeric_limits<double>::infinity();

/// Returns the number of a step's tasks on devices, one after the other if all
/// devices run all of them.
double tasks_of(const plans::Workflow& workflow) {
  return static_cast<double>(
    std::ranges::count_if(workflow.calls, [](const auto& call) {
      return call.kind != CallKind::function;
    }));
}

double phase_s(const PlanCosts& run, const std::string& phase) {
  const auto found = run.phases_s.find(phase);
  return found == run.phases_s.end() ? 0 : found->second;
}

/// Returns what a task costs beside its work: the idle seconds of the run's
/// devices in a step, per task, if each task follows the one before on all of
/// the first `used` of `devices`.
double control_s_of(const plans::Workflow& workflow, const PlanCosts& run,
                    double used, double devices) {
  const auto idle_of_used = 1 - (1 - run.idle_share) * devices / used;
  return std::max(0.0, idle_of_used) * run.step_s / tasks_of(workflow);
}

/// Splits what a task costs on all devices into a part per call and a part per
/// call and device, by what it costs on one device alone.
void set_control_costs(plans::Hardware& hardware,
                       const plans::PlanProblem& problem,
                       const ControlRuns& runs) {
  const double devices = problem.cluster.num_devices();
  const auto& run = runs.at(ControlLayout::data_parallel);
  const auto on_all_s = control_s_of(problem.workflow, run, devices, devices);
  const auto one = runs.find(ControlLayout::on_one_device);
  hardware.call_device_s = 0;
  hardware.sources["host.call_device_s"]
    = fmt::format("fitted: part of call_s, on {} devices", devices);
  if (one != runs.end() && devices > 1) {
    const auto on_one_s
      = control_s_of(problem.workflow, one->second, 1, devices);
    hardware.call_device_s = std::clamp((on_all_s - on_one_s) / (devices - 1),
                                        0.0, on_all_s / devices);
    hardware.sources["host.call_device_s"] = fmt::format(
      "fitted to tasks on 1 and on {} devices: {:.3g} and {:.3g} s beside "
      "their work",
      devices, on_one_s, on_all_s);
  }
  hardware.call_s = on_all_s - devices * hardware.call_device_s;
  hardware.move_s = on_all_s;
  hardware.sources["host.call_s"] = fmt::format(
    "fitted to the idle {:.1f} % of data parallel steps of {:.3g} s",
    100 * run.idle_share, run.step_s);
  hardware.sources["host.move_s"]
    = "fitted: as a call on all devices, a task beside its bytes";
}

/// Returns what a call of `placement` costs beside its work.
double control_s(const plans::Hardware& hardware,
                 const plans::Placement& placement) {
  return hardware.call_s
         + hardware.call_device_s
             * static_cast<double>(placement.devices.size());
}

/// Returns the part of a task's seconds in which it waits for its devices.
/// Tasks that follow each other on all devices share the idle time of the step;
/// a task that runs beside others has what set_control_costs found.
double waited_s(const plans::PlanProblem& problem, const PlanCosts& run,
                ControlLayout layout, const plans::Placement& placement) {
  if (layout == ControlLayout::trained_apart)
    return control_s(problem.hardware, placement);
  double tasks_s = 0;
  for (const auto& call : problem.workflow.calls)
    tasks_s += phase_s(run, phase_of(problem.workflow, call.name));
  const auto between_s = std::max(0.0, run.step_s - tasks_s);
  return std::max(0.0, run.idle_share * run.step_s - between_s)
         / tasks_of(problem.workflow);
}

/// Seconds of a model's work of one kind.
struct RunWork {
  double measured_s = 0;
  double predicted_s = 0;
};
using WorkKey = std::pair<CallKind, std::uint64_t>; ///< kind of call and number
                                                    ///< of parameters
using WorkOfRun = std::map<WorkKey, RunWork>;

/// Returns the work of a run's calls, with the prediction of `problem`. Calls
/// that share a metric are left out.
WorkOfRun work_of(const plans::PlanProblem& problem, ControlLayout layout,
                  const PlanCosts& run) {
  std::map<std::string, int> calls_of;
  for (const auto& call : problem.workflow.calls)
    ++calls_of[phase_of(problem.workflow, call.name)];
  const auto plan = control_plan(problem, layout);
  const auto predicted
    = plans::simulate(problem, plans::CostModel(problem), plan);
  WorkOfRun work;
  for (const auto& call : problem.workflow.calls) {
    const auto phase = phase_of(problem.workflow, call.name);
    if (call.kind == CallKind::function || calls_of[phase] > 1)
      continue;
    const auto& placement = plan.calls.at(call.name);
    auto& sum = work[{call.kind, num_parameters(problem.shapes.at(call.role))}];
    sum.measured_s
      += phase_s(run, phase) - waited_s(problem, run, layout, placement);
    sum.predicted_s
      += predicted.durations_s[predicted.graph.index_of(call.name)]
         - control_s(problem.hardware, placement);
  }
  std::erase_if(work, [](const auto& entry) {
    return entry.second.measured_s <= 0 || entry.second.predicted_s <= 0;
  });
  return work;
}

std::vector<ProfileOp> ops_of(CallKind kind) {
  if (kind == CallKind::generate)
    return {ProfileOp::prefill, ProfileOp::decode};
  return {kind == CallKind::train ? ProfileOp::train : ProfileOp::forward};
}

/// Scales the table's work of one kind to its length in the run: a call's time
/// grows with the table by what doubling the table would add.
void scale_table(plans::ProfileTable& table, plans::PlanProblem problem,
                 ControlLayout layout, const PlanCosts& run, CallKind kind) {
  const std::uint32_t tp = layout == ControlLayout::tensor_parallel ? 2 : 1;
  problem.profile = table;
  auto work = work_of(problem, layout, run);
  std::erase_if(work, [&](const auto& of) { return of.first.first != kind; });
  for (const auto& [key, seconds] : work)
    for (const auto op : ops_of(kind))
      problem.profile.scale(op, key.second, tp, 2);
  for (const auto& [key, twice] : work_of(problem, layout, run)) {
    const auto once = work.find(key);
    if (once == work.end() || twice.predicted_s <= once->second.predicted_s)
      continue;
    const auto& [measured_s, predicted_s] = once->second;
    const auto table_s = twice.predicted_s - predicted_s;
    const auto times = std::clamp(1 + (measured_s - predicted_s) / table_s,
                                  least_times, most_times);
    for (const auto op : ops_of(kind))
      table.scale(op, key.second, tp, times);
  }
}

/// Returns the share of the rate alone at which bytes that take `alone_s` alone
/// are transferred in a run, where they took `in_run_s`.
double share_of_rate(double alone_s, double in_run_s) {
  if (alone_s <= 0)
    return 1;
  return std::clamp(alone_s / std::max(in_run_s, alone_s), least_share, 1.0);
}

double training_s(const WorkOfRun& work, double RunWork::*seconds) {
  double sum_s = 0;
  for (const auto& [key, of_model] : work)
    if (key.first == CallKind::train)
      sum_s += of_model.*seconds;
  return sum_s;
}

/// Returns which share of `rate` alone remains in training: what training takes
/// in the run and not alone are bytes at that rate.
double share_in_training(plans::PlanProblem problem, ControlLayout layout,
                         const PlanCosts& run, double plans::Hardware::*rate) {
  problem.hardware.*rate = 0;
  const auto work = work_of(problem, layout, run);
  problem.hardware.*rate = at_once;
  const auto without_s
    = training_s(work_of(problem, layout, run), &RunWork::predicted_s);
  return share_of_rate(training_s(work, &RunWork::predicted_s) - without_s,
                       training_s(work, &RunWork::measured_s) - without_s);
}

void fit_sums(plans::Hardware& hardware, const plans::PlanProblem& problem,
              const PlanCosts& run) {
  const auto share = share_in_training(problem, ControlLayout::data_parallel,
                                       run, &plans::Hardware::sum_Bps);
  hardware.sum_Bps = share * hardware.intra_Bps;
  hardware.sources["links.sum_Bps"] = fmt::format(
    "fitted to training on all devices and on one: {:.0f} % of intra_Bps",
    100 * share);
  hardware.gather_Bps = share * hardware.zero_Bps;
  hardware.sources["links.gather_Bps"] = "fitted: as sums of gradients";
}

void fit_gathers(plans::Hardware& hardware, const plans::PlanProblem& problem,
                 const PlanCosts& run) {
  const auto share = share_in_training(problem, ControlLayout::sharded, run,
                                       &plans::Hardware::gather_Bps);
  hardware.gather_Bps = share * hardware.zero_Bps;
  hardware.sources["links.gather_Bps"]
    = fmt::format("fitted to training with sharded parameters: {:.0f} % of "
                  "zero_Bps",
                  100 * share);
}

/// Returns the seconds of a step's moves.
double moves_s(const plans::PlanProblem& problem) {
  const auto run
    = plans::simulate(problem, plans::CostModel(problem),
                      control_plan(problem, ControlLayout::trained_apart));
  double sum_s = 0;
  for (std::size_t i = 0; i < run.graph.tasks.size(); ++i)
    if (run.graph.tasks[i].kind == plans::TaskKind::move)
      sum_s += run.durations_s[i];
  return sum_s;
}

/// Fits moves: trained weights move from the devices where they trained alone
/// to all.
void fit_moves(plans::Hardware& hardware, plans::PlanProblem problem,
               const PlanCosts& run) {
  problem.hardware.move_Bps = 0;
  const auto all_s = moves_s(problem);
  problem.hardware.move_Bps = at_once;
  const auto without_s = moves_s(problem);
  const auto share = share_of_rate(all_s - without_s,
                                   phase_s(run, "timing_s/move") - without_s);
  hardware.move_Bps = share * hardware.intra_Bps;
  hardware.sources["links.move_Bps"]
    = fmt::format("fitted to the moves of models that trained on one device: "
                  "{:.0f} % of intra_Bps",
                  100 * share);
}

bool trains(const plans::Workflow& workflow) {
  return std::ranges::any_of(workflow.calls, [](const auto& call) {
    return call.kind == CallKind::train;
  });
}

} // namespace

bool is_possible(const plans::PlanProblem& problem, ControlLayout layout) {
  switch (layout) {
  case ControlLayout::data_parallel:
    return true;
  case ControlLayout::tensor_parallel:
    return problem.cluster.num_devices() % 2 == 0
           && std::ranges::all_of(problem.shapes, [](const auto& shape) {
                return plans::is_legal_tp(shape.second, 2);
              });
  case ControlLayout::trained_apart:
  case ControlLayout::sharded:
    return problem.cluster.num_devices() > 1 && trains(problem.workflow);
  case ControlLayout::on_one_device:
    return problem.cluster.num_devices() > 1
           && plans::check_plan(problem, control_plan(problem, layout)).ok();
  }
  return false;
}

plans::ExecutionPlan control_plan(const plans::PlanProblem& problem,
                                  ControlLayout layout) {
  plans::ExecutionPlan plan{.cluster = problem.cluster};
  const auto devices = problem.cluster.num_devices();
  const auto tp = layout == ControlLayout::tensor_parallel ? 2U : 1U;
  const auto used = layout == ControlLayout::on_one_device ? 1U : devices;
  plans::Placement everywhere{.strategy = {.dp = used / tp, .tp = tp}};
  for (std::uint32_t i = 0; i < used; ++i)
    everywhere.devices.emplace_back(i);
  std::map<std::string, plans::Placement> alone; // by role
  for (const auto& call : problem.workflow.calls)
    if (call.kind == CallKind::train
        && layout == ControlLayout::trained_apart) {
      const Rank next(static_cast<std::uint32_t>(alone.size()) % devices);
      alone.try_emplace(call.role, plans::Placement{.devices = {next}});
      plan.calls[call.name] = alone.at(call.role);
    } else if (call.kind == CallKind::train
               && layout == ControlLayout::sharded) {
      auto& placement = plan.calls[call.name] = everywhere;
      placement.strategy.zero = Zero::z3;
    } else {
      plan.calls[call.name]
        = call.kind == CallKind::function ? plans::Placement{} : everywhere;
    }
  return plan;
}

void fit_profile(MachineProfile& profile, plans::PlanProblem problem,
                 const ControlRuns& runs) {
  using enum ControlLayout;
  auto& [hardware, table] = profile;
  if (!runs.contains(data_parallel))
    return;
  set_control_costs(hardware, problem, runs);
  // The run, with `problem` as it was; null if its samples' lengths are
  // unknown.
  const auto run_of = [&](ControlLayout layout) -> const PlanCosts* {
    const auto run = runs.find(layout);
    if (run == runs.end() || run->second.response_tokens == 0)
      return nullptr;
    problem.lengths
      = plans::Lengths(run->second.prompt_tokens, run->second.response_tokens,
                       run->second.longest_response_tokens);
    problem.hardware = hardware;
    problem.profile = table;
    return &run->second;
  };
  const auto fit_table = [&](ControlLayout layout, CallKind kind) {
    if (const auto* run = run_of(layout))
      scale_table(table, problem, layout, *run, kind);
  };
  fit_table(data_parallel, CallKind::inference);
  fit_table(data_parallel, CallKind::generate);
  fit_table(run_of(trained_apart) ? trained_apart : data_parallel,
            CallKind::train);
  if (const auto* run = run_of(trained_apart)) {
    fit_moves(hardware, problem, *run);
    if (const auto* together = run_of(data_parallel))
      fit_sums(hardware, problem, *together);
    if (const auto* cut = run_of(sharded))
      fit_gathers(hardware, problem, *cut);
  }
  for (const auto kind :
       {CallKind::inference, CallKind::generate, CallKind::train})
    fit_table(tensor_parallel, kind);
}

} // namespace troupe::runtime
