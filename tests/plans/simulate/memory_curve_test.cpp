#include "plans/presets/presets.hpp"
#include "plans/simulate/memory_curve.hpp"

#include <gtest/gtest.h>

#include "tests/support/plans/problem_support.hpp"

namespace troupe::plans {
namespace {

PlanProblem roomy_problem() {
  auto problem = make_problem(shape_7b(), 1, 8);
  problem.hardware.mem_bytes = 0;
  return problem;
}

Simulation simulated(const PlanProblem& problem, const ExecutionPlan& plan) {
  return simulate(problem, CostModel(problem), plan);
}

/// Returns the bytes on device 0 at the middle of a task of the second step.
std::uint64_t bytes_in(const Simulation& run, const char* task) {
  const auto number = run.graph.index_of(task);
  for (const auto& times : run.times)
    if (times.task.task == number && times.task.step == StepId{1}) {
      const auto middle_s = (times.start_s + times.end_s) / 2;
      return most_bytes(run.devices.front().memory, middle_s, middle_s + 1e-9);
    }
  return 0;
}

TEST(MemoryCurve, HasThePeakOfTheCheckForEveryPreset) {
  const auto problem = roomy_problem();
  for (const auto& name : preset_names()) {
    const auto run
      = simulated(problem, preset(name, problem.workflow, problem.cluster,
                                  {.shapes = problem.shapes}));
    for (const auto& device : run.devices) {
      EXPECT_EQ(most_bytes(device.memory, 0, 1e9), device.peak_bytes)
        << name << " device " << device.device.value << " in "
        << device.peak_task;
      for (std::size_t i = 1; i < device.memory.size(); ++i)
        EXPECT_LT(device.memory[i - 1].at_s, device.memory[i].at_s);
    }
  }
}

TEST(MemoryCurve, PlanesAppearWithTheirMoveAndDisappearWithTheirDrop) {
  const auto problem = roomy_problem();
  auto plan = plan_all(problem.workflow, on(0, 7), 8);
  plan.calls["actor_gen"].strategy = parse_strategy("d4t2");
  const auto run = simulated(problem, plan);
  const auto least = bytes_in(run, "actor@actor_gen");
  EXPECT_GT(bytes_in(run, "actor_gen"), least) << "and the KV cache";
  plan.replicas["actor@actor_gen"] = true;
  const auto kept = simulated(problem, plan);
  EXPECT_EQ(bytes_in(kept, "actor_gen"), bytes_in(run, "actor_gen"));
  EXPECT_GT(bytes_in(kept, "ref_inf"), bytes_in(run, "ref_inf"));
}

TEST(MemoryCurve, AWaitingDeviceHoldsItsResidentPlanes) {
  const auto problem = roomy_problem();
  const auto run
    = simulated(problem, preset("openrlhf", problem.workflow, problem.cluster,
                                {.shapes = problem.shapes}));
  const auto& curve = run.devices.back().memory;
  std::uint64_t least = ~0ull;
  for (const auto& point : curve)
    least = std::min(least, point.bytes);
  EXPECT_GT(least, 0u);
  EXPECT_LT(least, run.devices.back().peak_bytes);
}

} // namespace
} // namespace troupe::plans
