#include "config/base/error.hpp"
#include "plans/schedule/schedule.hpp"

#include "tests/support/plans/support.hpp"
#include <gmock/gmock.h>

#include <chrono>

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

namespace troupe::plans {
namespace {

std::vector<std::string> names(const Schedule& schedule,
                               const std::vector<TaskRef>& tasks) {
  std::vector<std::string> texts;
  for (const auto task : tasks)
    texts.push_back(schedule.graph().tasks[task.task].name + "/"
                    + std::to_string(task.step.value));
  return texts;
}

/// Finishes the running task called `name` (its earliest step).
std::vector<std::string> finish(Schedule& schedule, const std::string& name) {
  for (const auto task : schedule.running())
    if (schedule.graph().tasks[task.task].name == name)
      return names(schedule, schedule.finished(task));
  ADD_FAILURE() << name << " does not run";
  return {};
}

TEST(Schedule, PpoOnOneDeviceRunsTasksSequentially) {
  const auto workflow = make_ppo();
  Schedule schedule(graph_of(workflow, plan_all(workflow, on(0, 0), 1)),
                    StepId{0}, StepId{2});
  EXPECT_THAT(names(schedule, schedule.start()), ElementsAre("actor_gen/0"));
  EXPECT_THAT(finish(schedule, "actor_gen"), ElementsAre("rew_inf/0"));
  EXPECT_THAT(finish(schedule, "rew_inf"), ElementsAre("ref_inf/0"));
  EXPECT_THAT(finish(schedule, "ref_inf"), ElementsAre("critic_inf/0"));
  EXPECT_THAT(finish(schedule, "critic_inf"), ElementsAre("advantages/0"));
  EXPECT_THAT(finish(schedule, "advantages"), ElementsAre("actor_train/0"));
  EXPECT_THAT(finish(schedule, "actor_train"), ElementsAre("critic_train/0"));
  EXPECT_FALSE(schedule.step_done(StepId{0}));
  EXPECT_THAT(finish(schedule, "critic_train"), ElementsAre("actor_gen/1"));
  EXPECT_TRUE(schedule.step_done(StepId{0}));
}

TEST(Schedule, CallsOnDisjointDevicesRunConcurrently) {
  const auto workflow = make_ppo();
  auto plan = plan_all(workflow, on(0, 0), 4);
  plan.calls["ref_inf"] = on(1, 1);
  plan.calls["critic_inf"] = plan.calls["critic_train"] = on(2, 3);
  Schedule schedule(graph_of(workflow, plan), StepId{0}, StepId{1});
  schedule.start();
  EXPECT_THAT(finish(schedule, "actor_gen"),
              UnorderedElementsAre("rew_inf/0", "ref_inf/0", "critic_inf/0"));
  finish(schedule, "rew_inf");
  finish(schedule, "ref_inf");
  finish(schedule, "critic_inf");
  EXPECT_THAT(finish(schedule, "advantages"),
              UnorderedElementsAre("actor_train/0", "critic_train/0"));
}

TEST(Schedule, AnIdleDeviceLoadsPlanesBeforeTheRowsOfTheirCallExist) {
  const auto workflow = make_ppo();
  auto plan = plan_all(workflow, on(0, 0), 2);
  plan.calls["ref_inf"] = on(1, 1);
  plan.roles["ref"].offload_weights = true;
  Schedule schedule(graph_of(workflow, plan), StepId{0}, StepId{2});
  EXPECT_THAT(names(schedule, schedule.start()),
              ElementsAre("actor_gen/0", "reload ref@ref_inf/0"));
  EXPECT_THAT(finish(schedule, "reload ref@ref_inf"), IsEmpty());
  EXPECT_THAT(finish(schedule, "actor_gen"),
              UnorderedElementsAre("rew_inf/0", "ref_inf/0"));
}

TEST(Schedule, PlanesAreLoadedAfterTheEarlierTasksOfTheDevice) {
  const auto workflow = make_ppo();
  auto plan = plan_all(workflow, on(0, 0), 2);
  plan.calls["critic_train"] = plan.calls["critic_inf"] = on(1, 1);
  plan.roles["critic"].offload_optimizer = true;
  Schedule schedule(graph_of(workflow, plan), StepId{0}, StepId{1});
  EXPECT_THAT(names(schedule, schedule.start()), ElementsAre("actor_gen/0"))
    << "critic_inf comes first on the critic's device";
  finish(schedule, "actor_gen");
  EXPECT_THAT(finish(schedule, "critic_inf"),
              ElementsAre("reload critic@critic_train/0"))
    << "while rewards and references are made";
}

TEST(Schedule, NoCallReadsTheWeightsMovedForAnother) {
  const auto workflow = make_ppo();
  auto plan = plan_apart(workflow);
  plan.calls["critic_inf"] = on(0, 1); // updated from 2-3
  Schedule schedule(graph_of(workflow, plan), StepId{0}, StepId{2});
  EXPECT_THAT(names(schedule, schedule.start()),
              ElementsAre("actor@actor_gen/0"));
  EXPECT_THAT(finish(schedule, "actor@actor_gen"), ElementsAre("actor_gen/0"));
  finish(schedule, "actor_gen");
  EXPECT_THAT(finish(schedule, "drop actor@actor_gen"),
              ElementsAre("critic@critic_inf/0"));
  EXPECT_THAT(finish(schedule, "critic@critic_inf"),
              ElementsAre("critic_inf/0"))
    << "rewards and references wait until it is dropped";
}

TEST(Schedule, AMoveThatNoRunningCallReadsOverlapsOtherWork) {
  const auto workflow = make_ppo();
  auto plan = plan_all(workflow, on(0, 1), 6);
  plan.calls["critic_inf"] = on(2, 3);
  plan.calls["critic_train"] = on(4, 5);
  Schedule schedule(graph_of(workflow, plan), StepId{0}, StepId{2});
  EXPECT_THAT(names(schedule, schedule.start()),
              UnorderedElementsAre("actor_gen/0", "critic@critic_inf/0"));
}

TEST(Schedule, ADropDoesNotDelayTheNextCall) {
  const auto workflow = make_ppo();
  auto plan = plan_all(workflow, on(2, 3), 4);
  plan.calls["actor_gen"] = on(0, 1);
  plan.calls["ref_inf"] = on(0, 3);
  const auto graph = graph_of(workflow, plan);
  std::vector<double> seconds(graph.tasks.size(), 1);
  seconds[graph.index_of("ref_inf")] = 5;
  seconds[graph.index_of("drop actor@actor_gen")] = 0;
  Schedule schedule(graph, StepId{0}, StepId{1}, seconds);
  schedule.start();
  finish(schedule, "actor@actor_gen");
  EXPECT_THAT(finish(schedule, "actor_gen"),
              ElementsAre("drop actor@actor_gen/0"))
    << "devices 2 and 3 are ref_inf's, which matters most";
  EXPECT_THAT(finish(schedule, "drop actor@actor_gen"),
              ElementsAre("ref_inf/0"));
}

TEST(Schedule, AnIdleDeviceNamesWhatItWaitsFor) {
  const auto workflow = make_ppo();
  auto plan = plan_all(workflow, on(0, 0), 2);
  plan.calls["ref_inf"] = on(1, 1);
  Schedule schedule(graph_of(workflow, plan), StepId{0}, StepId{2});
  const auto waits = [&] {
    std::vector<std::string> texts;
    for (const auto& [device, wait] : schedule.idle_devices())
      texts.push_back(std::to_string(device.value) + " "
                      + (wait ? schedule.describe_whom(*wait) : "step"));
    return texts;
  };
  schedule.start();
  EXPECT_THAT(waits(), ElementsAre("1 actor_gen (data)"));
  finish(schedule, "actor_gen");
  EXPECT_THAT(waits(), IsEmpty());
  finish(schedule, "ref_inf");
  EXPECT_THAT(waits(), ElementsAre("1 step")) << "nothing more in this one";
  finish(schedule, "rew_inf");
  finish(schedule, "critic_inf");
  EXPECT_THAT(waits(), ElementsAre("0 advantages (data)", "1 step"));
}

TEST(Schedule, LagOneGeneratesDuringTraining) {
  const auto workflow = make_ppo();
  auto plan = plan_apart(workflow);
  plan.lag["actor_gen"] = 1;
  Schedule schedule(graph_of(workflow, plan), StepId{0}, StepId{5});
  EXPECT_THAT(names(schedule, schedule.start()), ElementsAre("actor_gen/0"));
  finish(schedule, "actor_gen"); // the step's move waits for this reader
  std::vector<std::string> together;
  while (together.empty()) {
    const auto running = names(schedule, schedule.running());
    ASSERT_FALSE(running.empty());
    const bool both = std::ranges::count(running, "actor_gen/1")
                      && std::ranges::count(running, "actor_train/0");
    together = both ? running : together;
    if (running.front() != "actor_gen/1")
      schedule.finished(schedule.running().front());
    else if (!both && running.size() > 1)
      schedule.finished(schedule.running().back());
    else
      break;
  }
  EXPECT_THAT(together, Contains("actor_train/0"));
}

TEST(Schedule, LagZeroIsStrictlyOnPolicy) {
  const auto workflow = make_ppo();
  Schedule schedule(graph_of(workflow, plan_apart(workflow)), StepId{0},
                    StepId{3});
  for (auto tasks = schedule.start(); !schedule.all_done();
       tasks = schedule.running()) {
    ASSERT_FALSE(tasks.empty());
    for (const auto task : tasks)
      EXPECT_EQ(task.step, schedule.oldest_step());
    schedule.finished(tasks.front());
  }
}

TEST(Schedule, TheLongerPathRunsFirst) {
  // a -> long, b -> short: both a and b are ready on one device.
  StepGraph graph;
  graph.tasks = {{.name = "b", .devices = ranks(0, 0)},
                 {.name = "a", .devices = ranks(0, 0)},
                 {.name = "short", .needs = {{0, 0, Edge::data}}},
                 {.name = "long", .needs = {{1, 0, Edge::data}}}};
  const std::vector<double> durations_s = {1, 1, 1, 5};
  Schedule schedule(graph, StepId{0}, StepId{1}, durations_s);
  EXPECT_THAT(names(schedule, schedule.start()), ElementsAre("a/0"));
}

TEST(Schedule, WaitsHaveNamesAndReasons) { // I7
  const auto workflow = make_ppo();
  Schedule schedule(graph_of(workflow, plan_all(workflow, on(0, 0), 1)),
                    StepId{0}, StepId{1});
  schedule.start();
  finish(schedule, "actor_gen");
  std::vector<std::string> texts;
  for (const auto& wait : schedule.waits())
    texts.push_back(schedule.describe(wait));
  EXPECT_THAT(
    texts,
    Contains("ref_inf of step 1 waits for rew_inf of step 1 (device 0)"));
  EXPECT_THAT(
    texts, Contains("advantages of step 1 waits for rew_inf of step 1 (data)"));
  EXPECT_EQ(texts.size(), workflow.calls.size() - 2);
}

TEST(Schedule, OnlyStartedTasksMayFinish) {
  const auto workflow = make_ppo();
  Schedule schedule(graph_of(workflow, plan_all(workflow, on(0, 0), 1)),
                    StepId{0}, StepId{1});
  schedule.start();
  EXPECT_THROW(schedule.finished({1, StepId{0}}), InvariantError);
  EXPECT_THROW(schedule.finished({0, StepId{7}}), InvariantError);
}

TEST(Schedule, ARunMayStartInTheMiddle) {
  const auto workflow = make_ppo();
  Schedule schedule(graph_of(workflow, plan_apart(workflow)), StepId{17},
                    StepId{18});
  EXPECT_THAT(names(schedule, schedule.start()),
              ElementsAre("actor@actor_gen/17"));
  while (!schedule.all_done())
    schedule.finished(schedule.running().front());
  EXPECT_TRUE(schedule.step_done(StepId{17}));
}

TEST(Schedule, ARunOfNoStepsEndsAtOnce) {
  const auto workflow = make_ppo();
  Schedule schedule(graph_of(workflow, plan_apart(workflow)), StepId{3},
                    StepId{3});
  EXPECT_THAT(schedule.start(), IsEmpty());
  EXPECT_TRUE(schedule.all_done());
}

TEST(Schedule, ATaskWaitedForRowsWeightsOrADevice) {
  const auto workflow = make_ppo();
  const auto graph = graph_of(workflow, plan_apart(workflow));
  const auto task = [&](const char* name, std::uint32_t step) {
    return TaskRef{graph.index_of(name), StepId{step}};
  };
  EXPECT_EQ(wait_reason(graph, task("rew_inf", 1), task("actor_gen", 1)),
            WaitReason::dependency);
  EXPECT_EQ(
    wait_reason(graph, task("actor@actor_gen", 1), task("actor_train", 0)),
    WaitReason::version);
  EXPECT_EQ(wait_reason(graph, task("rew_inf", 1), task("actor_gen", 0)),
            WaitReason::device)
    << "another step's rows are no need of this one";
}

TEST(Schedule, AMillionTasksStayCheap) {
  // 1,000 templates per step on 64 devices, 1,000 steps: chains of ten.
  StepGraph graph;
  graph.max_lag = 1;
  for (std::uint32_t i = 0; i < 1000; ++i) {
    TaskTemplate task{.name = std::to_string(i),
                      .devices = ranks(i % 64, i % 64)};
    if (i % 10 != 0)
      task.needs.push_back({i - 1, 0, Edge::data});
    task.needs.push_back({i, 1, Edge::order});
    graph.tasks.push_back(std::move(task));
  }
  Schedule schedule(std::move(graph), StepId{0}, StepId{1000});
  std::deque<TaskRef> running;
  std::size_t finished = 0;
  const auto run = [&](const std::vector<TaskRef>& tasks) {
    running.insert(running.end(), tasks.begin(), tasks.end());
  };
  const auto began = std::chrono::steady_clock::now();
  for (run(schedule.start()); !running.empty(); ++finished) {
    const auto task = running.front();
    running.pop_front();
    run(schedule.finished(task));
  }
  const std::chrono::duration<double> took
    = std::chrono::steady_clock::now() - began;
  RecordProperty("seconds", std::to_string(took.count()));
  EXPECT_EQ(finished, 1'000'000u);
  EXPECT_TRUE(schedule.all_done());
}

} // namespace
} // namespace troupe::plans
