#include "runtime/verbs/control_runs.hpp"

#include "plans/simulator.hpp"
#include "plans/strategy_rules.hpp"
#include "runtime/step_names.hpp"
#include "runtime/verbs/plan_measure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

namespace troupe::runtime {

namespace {

using plans::CallKind;
using plans::ProfileOp;

constexpr int control_steps = 8;
/// Runs of each layout, by turns. Other programs and a slow clock only make one
/// longer, so the shortest counts.
constexpr int control_rounds = 3;
/// Of a run: one step to warm up, and what starts and ends it.
constexpr double run_overhead_s = 5;
/// Work in a run takes so many times as long; beyond it something else is
/// wrong.
constexpr double least_times = 0.7, most_times = 2;

/// Every call on all devices.
plans::ExecutionPlan plan_on_all(const plans::PlanProblem& problem,
                                 std::uint32_t tp) {
  plans::ExecutionPlan plan{.cluster = problem.cluster};
  const auto devices = problem.cluster.num_devices();
  plans::Placement everywhere{.strategy = {.dp = devices / tp, .tp = tp}};
  for (std::uint32_t i = 0; i < devices; ++i)
    everywhere.devices.emplace_back(i);
  for (const auto& call : problem.workflow.calls)
    plan.calls[call.name]
      = call.kind == CallKind::function ? plans::Placement{} : everywhere;
  return plan;
}

/// Tasks of a step on devices, one after the other where all devices do all.
double tasks_of(const plans::Workflow& workflow) {
  return static_cast<double>(
    std::ranges::count_if(workflow.calls, [](const auto& call) {
      return call.kind != CallKind::function;
    }));
}

/// What devices idle in a step, by task: each follows the one before.
double idle_of_task_s(const plans::PlanProblem& problem,
                      const PlanCosts& costs) {
  return costs.idle_share * costs.step_s / tasks_of(problem.workflow);
}

void set_control_costs(plans::Hardware& hardware, double seconds,
                       const PlanCosts& costs) {
  hardware.call_s = hardware.move_s = seconds;
  hardware.sources["host.call_s"]
    = fmt::format("fitted to the idle {:.1f} % of {} data parallel steps of "
                  "{:.3g} s",
                  100 * costs.idle_share, control_steps, costs.step_s);
  hardware.sources["host.move_s"] = "as call_s: a task beside its bytes";
}

/// Seconds of a model's work of one kind.
struct RunWork {
  double measured_s = 0;
  double predicted_s = 0;
};
using WorkKey = std::pair<CallKind, std::uint64_t>; ///< and parameters

/// What calls of a run worked, and what the table says of it for samples as
/// long as the run's. Calls that share a metric are left out.
std::map<WorkKey, RunWork> work_of(const plans::PlanProblem& problem,
                                   const plans::ExecutionPlan& plan,
                                   const PlanCosts& run) {
  std::map<std::string, int> calls_of;
  double tasks_s = 0;
  for (const auto& call : problem.workflow.calls)
    ++calls_of[phase_of(problem.workflow, call.name)];
  const auto phase_s = [&](const plans::Call& call) {
    const auto found = run.phases_s.find(phase_of(problem.workflow, call.name));
    return found == run.phases_s.end() ? 0 : found->second;
  };
  for (const auto& call : problem.workflow.calls)
    tasks_s += phase_s(call);
  const auto between_s = std::max(0.0, run.step_s - tasks_s);
  const auto waited_s = std::max(0.0, run.idle_share * run.step_s - between_s)
                        / tasks_of(problem.workflow);
  const plans::CostModel costs(problem);
  std::map<WorkKey, RunWork> work;
  for (const auto& call : problem.workflow.calls) {
    if (call.kind == CallKind::function
        || calls_of[phase_of(problem.workflow, call.name)] > 1)
      continue;
    auto& sum = work[{call.kind, num_parameters(problem.shapes.at(call.role))}];
    sum.measured_s += phase_s(call) - waited_s;
    sum.predicted_s
      += costs.call_s(call, plan.calls.at(call.name)) - problem.hardware.call_s;
  }
  return work;
}

std::vector<ProfileOp> ops_of(CallKind kind) {
  if (kind == CallKind::generate)
    return {ProfileOp::prefill, ProfileOp::decode};
  return {kind == CallKind::train ? ProfileOp::train : ProfileOp::forward};
}

/// The table's work as long as it was in the run.
void scale_table(plans::ProfileTable& table, plans::PlanProblem problem,
                 const plans::ExecutionPlan& plan, std::uint32_t tp,
                 const PlanCosts& run) {
  if (run.response_tokens == 0)
    return; // how long its samples were is not known
  problem.lengths = plans::Lengths(run.prompt_tokens, run.response_tokens,
                                   run.longest_response_tokens);
  problem.profile = table;
  for (const auto& [key, work] : work_of(problem, plan, run)) {
    if (work.measured_s <= 0 || work.predicted_s <= 0)
      continue;
    const auto times
      = std::clamp(work.measured_s / work.predicted_s, least_times, most_times);
    for (const auto op : ops_of(key.first))
      table.scale(op, key.second, tp, times);
  }
}

bool is_legal_everywhere(const plans::PlanProblem& problem, std::uint32_t tp) {
  return problem.cluster.num_devices() % tp == 0
         && std::ranges::all_of(problem.shapes, [&](const auto& shape) {
              return plans::is_legal_tp(shape.second, tp);
            });
}

/// Runs every layout once and keeps the shorter of its runs. Says why where
/// one failed; what would not end by then is left out.
std::string run_a_round(const plans::PlanProblem& problem,
                        const ConfigWords& config,
                        std::chrono::steady_clock::time_point end,
                        std::map<std::uint32_t, PlanCosts>& shortest) {
  const plans::CostModel costs(problem);
  for (const std::uint32_t tp : {1U, 2U}) {
    if (!is_legal_everywhere(problem, tp))
      continue;
    const auto plan = plan_on_all(problem, tp);
    const std::chrono::duration<double> takes(
      run_overhead_s
      + (control_steps + 1) * plans::simulate_step_s(problem, costs, plan));
    if (std::chrono::steady_clock::now() + takes > end)
      return tp > 1 || !shortest.empty()
               ? ""
               : fmt::format("no run of {} steps, which would take {:.0f} s",
                             control_steps, takes.count());
    const auto run = measure_plan(config, plan, control_steps);
    if (!run.costs)
      return "the run of some steps failed: " + run.why;
    const auto [place, first] = shortest.try_emplace(tp, *run.costs);
    if (!first && run.costs->step_s < place->second.step_s)
      place->second = *run.costs;
  }
  return "";
}

} // namespace

std::string fit_to_runs(MachineProfile& profile, plans::PlanProblem problem,
                        const ConfigWords& config, double left_s) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now()
                   + std::chrono::duration_cast<Clock::duration>(
                     std::chrono::duration<double>(left_s));
  problem.hardware = profile.hardware;
  problem.profile = profile.table;
  std::map<std::uint32_t, PlanCosts> shortest;
  for (int round = 0; round < control_rounds; ++round)
    if (const auto why = run_a_round(problem, config, end, shortest);
        !why.empty())
      return why;
  for (const auto& [tp, run] : shortest) {
    if (tp == 1)
      set_control_costs(profile.hardware, idle_of_task_s(problem, run), run);
    problem.hardware = profile.hardware;
    scale_table(profile.table, problem, plan_on_all(problem, tp), tp, run);
  }
  return "";
}

} // namespace troupe::runtime
