// Devices that share the cores of their node, in cost model, simulator and
// search.
#include "plans/search/local_search.hpp"
#include "plans/simulate/simulator.hpp"

#include "tests/support/plans/problem_support.hpp"
#include <gmock/gmock.h>

#include <map>
#include <random>

using ::testing::DoubleEq;
using ::testing::ElementsAre;

namespace troupe::plans {
namespace {

/// A node of 4 devices with this number of cores.
SharedCores cores_of_four(double cores) {
  Hardware hardware;
  hardware.devices_per_node = 4;
  hardware.crowded_share = cores / 4;
  return {hardware, {.nodes = 1, .devices_per_node = 4}};
}

/// Independent calls on these devices, which run concurrently.
StepGraph calls_on(const std::vector<std::vector<Rank>>& meshes) {
  StepGraph graph;
  for (const auto& mesh : meshes)
    graph.tasks.push_back({.name = "call", .call = "call", .devices = mesh});
  return graph;
}

/// Returns the ends of one step's tasks, each of which takes `seconds` alone.
std::vector<double> ends_s(const StepGraph& graph, std::vector<double> seconds,
                           const SharedCores& cores) {
  std::vector<double> ends(graph.tasks.size(), 0);
  for (const auto& times :
       run_schedule(graph, {.all = std::move(seconds), .cores = cores}, 1))
    ends[times.task.task] = times.end_s;
  return ends;
}

TEST(SharedCores, ConcurrentCallsShareCores) {
  const auto halves = calls_on({ranks(0, 1), ranks(2, 3)});
  EXPECT_THAT(ends_s(halves, {3, 3}, cores_of_four(4)), ElementsAre(3, 3));
  EXPECT_THAT(ends_s(halves, {3, 3}, cores_of_four(2)), ElementsAre(6, 6));
  EXPECT_THAT(ends_s(halves, {3, 3}, cores_of_four(3)), ElementsAre(4, 4));
  EXPECT_THAT(ends_s(halves, {1, 3}, cores_of_four(2)), ElementsAre(2, 4))
    << "what is left of the longer one goes alone";
}

TEST(SharedCores, ASingleCallHasAllCoresThatItsDevicesCanUse) {
  for (const auto& mesh : {ranks(0, 0), ranks(0, 1), ranks(0, 3)})
    for (const double cores : {1.0, 2.0, 4.0})
      EXPECT_THAT(ends_s(calls_on({mesh}), {3}, cores_of_four(cores)),
                  ElementsAre(3))
        << "seconds are those of a call alone";
  EXPECT_THAT(
    ends_s(calls_on({ranks(0, 0), ranks(1, 1)}), {3, 3}, cores_of_four(2)),
    ElementsAre(3, 3))
    << "a core for each of two devices";
  EXPECT_THAT(
    ends_s(calls_on({ranks(0, 0), ranks(1, 3)}), {3, 3}, cores_of_four(2)),
    ElementsAre(DoubleEq(5), DoubleEq(4)))
    << "half a core for each device, then the first has one";
}

TEST(SharedCores, WaitingPipelineStagesReleaseTheirCores) {
  const auto halves = calls_on({ranks(0, 1), ranks(2, 3)});
  const auto end_s = [&](double use) {
    return run_schedule(
             halves,
             {.all = {3, 3}, .cores = cores_of_four(2), .use = {use, use}}, 1)
      .back()
      .end_s;
  };
  EXPECT_EQ(end_s(0.5), 3);
  EXPECT_EQ(end_s(0.75), 4.5);
  EXPECT_EQ(end_s(1), 6);

  auto problem = make_problem(shape_tiny(), 1, 4, "laptop");
  const auto use = [&](const char* call, const char* strategy, int batches) {
    const Placement place{.devices = ranks(0, 3),
                          .strategy = parse_strategy(strategy),
                          .micro_batches = batches};
    return CostModel(problem).use_of(problem.workflow.call(call), place);
  };
  EXPECT_DOUBLE_EQ(use("actor_train", "p4", 4), 4 / 7.);
  EXPECT_DOUBLE_EQ(use("ref_inf", "d2p2", 8), 8 / 9.);
  EXPECT_EQ(use("ref_inf", "d4", 8), 1);
  EXPECT_EQ(use("actor_gen", "p4", 4), 1);
}

TEST(SharedCores, APipelineIsSlowWhereManyOfItsStagesWork) {
  const auto alone = [](double stages, double batches) {
    return cores_of_four(2).alone(ranks(0, 3),
                                  {.stages = stages, .micro_batches = batches});
  };
  // 1, 2, 3, 4, 3, 2, 1 devices at work; half of what all four take
  EXPECT_DOUBLE_EQ(alone(4, 4), (1 + 1 + 1.5 + 2 + 1.5 + 1 + 1) / 7 / 2);
  EXPECT_DOUBLE_EQ(alone(4, 2), 0.5) << "at most two at once";
  EXPECT_DOUBLE_EQ(alone(2, 3), (1 + 2 + 2 + 1) / 4. / 2);
  EXPECT_DOUBLE_EQ(alone(1, 8), 1) << "all of them";
}

TEST(SharedCores, TheCoreOfAWaitingDeviceIsNotShared) {
  EXPECT_EQ(SharedCores().at_work(ranks(0, 3), 0.5), 4);
  EXPECT_EQ(cores_of_four(4).at_work(ranks(0, 3), 0.5), 4);
  EXPECT_EQ(cores_of_four(2).at_work(ranks(0, 3), 1), 2);
  EXPECT_EQ(cores_of_four(2).at_work(ranks(0, 3), 0.25), 1)
    << "who shares them has what others leave";
}

TEST(SharedCores, NodesHaveSeparateCores) {
  Hardware hardware;
  hardware.devices_per_node = 2;
  hardware.crowded_share = 0.5;
  const SharedCores cores(hardware, {.nodes = 2, .devices_per_node = 2});
  EXPECT_THAT(ends_s(calls_on({ranks(0, 0), ranks(2, 2)}), {3, 3}, cores),
              ElementsAre(3, 3));
  EXPECT_THAT(ends_s(calls_on({ranks(0, 0), ranks(1, 1)}), {3, 3}, cores),
              ElementsAre(6, 6));
  // the second one waits for its half on the first's node
  EXPECT_THAT(ends_s(calls_on({ranks(0, 0), ranks(1, 2)}), {3, 4}, cores),
              ElementsAre(6, 7));
}

/// The share of the cores that busy devices can have, from each start or end to
/// the next.
double core_seconds(const StepGraph& graph, const std::vector<TaskTimes>& times,
                    double cores) {
  std::map<double, double> busy_from; // devices, changes of
  for (const auto& task : times) {
    const auto count = double(graph.tasks[task.task.task].devices.size());
    busy_from[task.start_s] += count;
    busy_from[task.end_s] -= count;
  }
  double done = 0, busy = 0, before_s = 0;
  for (const auto& [at_s, change] : busy_from) {
    done += (at_s - before_s) * std::min(busy, cores);
    busy += change;
    before_s = at_s;
  }
  return done;
}

TEST(SharedCores, TheWorkOfCoresIsConserved) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 200; ++round) {
    const double cores = 1 + double(random() % 4);
    const auto shared = cores_of_four(cores);
    StepGraph graph = calls_on({});
    std::vector<double> seconds;
    double work = 0, longest = 0;
    for (std::uint32_t i = 0; i < 12; ++i) {
      const auto first = static_cast<std::uint32_t>(random() % 4);
      const auto last
        = first + static_cast<std::uint32_t>(random() % (4 - first));
      graph.tasks.push_back(
        {.name = "call", .call = "call", .devices = ranks(first, last)});
      seconds.push_back(0.5 + double(random() % 100));
      const double count = last - first + 1;
      work += seconds.back() * std::min(count, cores);
      longest = std::max(longest, seconds.back());
    }
    const auto times
      = run_schedule(graph, {.all = seconds, .cores = shared}, 1);
    EXPECT_NEAR(core_seconds(graph, times, cores), work, 1e-9 * work);
    const auto last = std::ranges::max(times, {}, &TaskTimes::end_s);
    EXPECT_GE(last.end_s, std::max(longest, work / cores) * (1 - 1e-12));
  }
}

TEST(SharedCores, AShareOfOneChangesNoBit) {
  auto problem = make_problem(shape_7b(), 2, 4);
  problem.hardware.mem_bytes = 0;
  auto whole = problem;
  whole.hardware.crowded_share = 1;
  EXPECT_FALSE(SharedCores(whole.hardware, whole.cluster).any());
  const CostModel costs(problem), same(whole);
  const SearchSpace space(problem, costs, {.chunks = true});
  PointCost cost(space, {});
  Walk walk(space, cost, {}, 3);
  for (int i = 0; i < 50; ++i) {
    const auto plan = plan_at(space, walk.random_point(), {});
    EXPECT_EQ(simulate_step_s(problem, costs, plan),
              simulate_step_s(whole, same, plan));
  }
}

TEST(SharedCores, SearchesCountCoresLikeTheSimulator) {
  auto problem = make_problem(shape_7b(), 2, 4);
  problem.hardware.mem_bytes = 0;
  problem.hardware.devices_per_node = 4;
  problem.hardware.crowded_share = 0.5;
  problem.hardware.move_s = 0.5; // as long as calls
  const CostModel costs(problem);
  const SearchSpace space(problem, costs, {.chunks = true});
  auto free = problem;
  free.hardware.crowded_share = 0;
  PointCost cost(space, {});
  Walk walk(space, cost, {}, 5);
  for (int i = 0; i < 200; ++i) {
    const auto point = walk.random_point();
    const auto plan = plan_at(space, point, {});
    const auto slow = simulate_step_s(problem, costs, plan);
    EXPECT_NEAR(cost.step_s(point), slow, 1e-9 * slow) << print(plan);
    EXPECT_LE(slow, simulate_step_s(free, CostModel(free), plan) * (1 + 1e-9))
      << "profiled seconds are those with all devices at work";
  }
}

} // namespace
} // namespace troupe::plans
