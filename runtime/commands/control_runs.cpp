#include "runtime/commands/control_runs.hpp"

#include "plans/simulate/simulator.hpp"
#include "runtime/commands/control_fit.hpp"

#include <fmt/format.h>

#include <chrono>
#include <utility>

namespace troupe::runtime {

namespace {

constexpr int control_steps = 8;
/// Runs per layout, in turns. Other programs and a slow clock only make one
/// longer, so the shortest counts.
constexpr int control_rounds = 3;
/// Overhead of a run: one warm-up step, start and end.
constexpr double run_overhead_s = 5;

/// Runs every layout once and keeps the shorter of its runs. Returns the reason
/// if one failed; omits what would not end in time.
std::string run_a_round(const plans::PlanProblem& problem,
                        const ConfigArguments& config,
                        std::chrono::steady_clock::time_point end,
                        ControlRuns& shortest) {
  using enum ControlLayout;
  const plans::CostModel costs(problem);
  for (const auto layout : {data_parallel, tensor_parallel, trained_apart,
                            sharded, on_one_device}) {
    if (!is_possible(problem, layout))
      continue;
    const auto plan = control_plan(problem, layout);
    const std::chrono::duration<double> takes(
      run_overhead_s
      + (control_steps + 1) * plans::simulate_step_s(problem, costs, plan));
    if (std::chrono::steady_clock::now() + takes > end)
      return shortest.empty()
               ? fmt::format("no run of {} steps, which would take {:.0f} s",
                             control_steps, takes.count())
               : "";
    const auto run = measure_plan(config, plan, control_steps);
    if (!run.costs)
      return "the run of some steps failed: " + run.why;
    const auto [place, first] = shortest.try_emplace(layout, *run.costs);
    if (!first && run.costs->step_s < place->second.step_s)
      place->second = *run.costs;
  }
  return "";
}

} // namespace

std::string fit_to_runs(MachineProfile& profile, plans::PlanProblem problem,
                        const ConfigArguments& config, double left_s) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now()
                   + std::chrono::duration_cast<Clock::duration>(
                     std::chrono::duration<double>(left_s));
  problem.hardware = profile.hardware;
  problem.profile = profile.table;
  ControlRuns shortest;
  std::string why;
  for (int round = 0; round < control_rounds && why.empty(); ++round)
    why = run_a_round(problem, config, end, shortest);
  fit_profile(profile, std::move(problem), shortest);
  return why;
}

} // namespace troupe::runtime
