// A run that is told to stop finishes the steps that it has started, whatever
// the lag, plan and moment, and of other steps only what these depend on
// (Schedule::stop_unrolling).
#include "plans/schedule/schedule.hpp"

#include "tests/support/plans/support.hpp"
#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <random>

namespace troupe::plans {
namespace {

/// Runs steps 0 to 9 and stops after `stop_after` finished tasks, finishing
/// running tasks in random order; returns the started tasks by step.
std::map<std::uint32_t, std::size_t>
run_and_stop(Schedule& schedule, std::size_t stop_after, std::uint32_t seed) {
  std::mt19937 random{seed};
  std::map<std::uint32_t, std::size_t> started;
  std::vector<TaskRef> running = schedule.start();
  std::size_t finished = 0;
  const auto note = [&](const std::vector<TaskRef>& tasks) {
    running.insert(running.end(), tasks.begin(), tasks.end());
  };
  while (!running.empty()) {
    if (finished++ == stop_after)
      note(schedule.stop_unrolling());
    const auto pick = random() % running.size();
    const TaskRef task = running[pick];
    running.erase(running.begin() + static_cast<std::ptrdiff_t>(pick));
    ++started[task.step.value];
    note(schedule.finished(task));
  }
  return started;
}

class EarlyStop : public ::testing::TestWithParam<std::uint32_t> {};

TEST_P(EarlyStop, EveryStartedStepEndsAndNoneIsHalfDone) {
  const auto workflow = make_ppo();
  auto plan = plan_apart(workflow);
  plan.lag["actor_gen"] = GetParam();
  const auto graph
    = make_step_graph(workflow, plan, replicas_of(workflow, plan));
  for (std::uint32_t stop_after = 0; stop_after < 60; ++stop_after) {
    Schedule schedule(graph, StepId{0}, StepId{10});
    const auto started = run_and_stop(schedule, stop_after, stop_after);
    EXPECT_TRUE(schedule.all_done()) << "stopped after " << stop_after;
    const auto ahead = steps_ahead(graph);
    for (const auto& [step, count] : started) {
      const auto end = schedule.end().value;
      const auto whole = std::ranges::count_if(
        ahead, [&](std::uint32_t steps) { return step < end + steps; });
      EXPECT_EQ(count, static_cast<std::size_t>(whole)) << "step " << step;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Lags, EarlyStop, ::testing::Values(0U, 1U, 2U));

} // namespace
} // namespace troupe::plans
