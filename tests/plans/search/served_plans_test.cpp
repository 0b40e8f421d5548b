// Searches for runs whose responses come from servers (rollout.engine).
#include "plans/search/search.hpp"
#include "plans/simulate/simulator.hpp"

#include <gtest/gtest.h>

#include "tests/support/plans/problem_support.hpp"

namespace troupe::plans {
namespace {

TEST(ServedPlans, ASearchProposesOnlyPlansThatServersCanRun) {
  auto problem = make_problem(shape_7b(), 1, 8);
  for (const std::size_t servers : {0, 4}) {
    problem.rules.servers = servers;
    const CostModel costs(problem);
    const auto found = search_plan(problem, costs, {});
    const auto& place = found.best.plan.calls.at("actor_gen");
    EXPECT_EQ(place.strategy.pp, 1U);
    EXPECT_LE(place.strategy.tp, problem.cluster.devices_per_node);
    if (servers > 0) {
      EXPECT_EQ(place.strategy.dp, servers);
    }
    EXPECT_TRUE(check_plan(problem, found.best.plan).ok());
  }
}

/// Returns a problem whose generation is by servers.
PlanProblem served_problem() {
  auto problem = make_problem(shape_7b(), 1, 8);
  problem.sizes.engine.serves = true;
  problem.rules.servers = 0;
  problem.workflow.calls.front().by.servers = true;
  return problem;
}

const Placement two_devices{.devices = {Rank{0}, Rank{1}},
                            .strategy = parse_strategy("t2")};

double update_seconds(const PlanProblem& problem) {
  const CostModel costs(problem);
  return costs.update_s(problem.workflow.call("actor_gen"), two_devices);
}

TEST(ServedPlans, AnUpdateIsSixPassesOverTheModel) {
  const auto problem = served_problem();
  const auto bytes = 4.0 * double(num_parameters(problem.shapes.at("actor")));
  const auto passes = 6; // read, written, summed by us; by the server again
  const auto expected_s = passes * bytes / problem.hardware.host_Bps;
  EXPECT_NEAR(update_seconds(problem), expected_s, 0.05 * expected_s);
}

TEST(ServedPlans, AnUpdateIsCountedOnceBesideItsCall) {
  const auto seconds = [](const PlanProblem& problem) {
    return CostModel(problem).call_s(problem.workflow.call("actor_gen"),
                                     two_devices);
  };
  auto own = served_problem();
  own.workflow.calls.front().by.servers = false;
  own.sizes.engine.serves = false;
  EXPECT_DOUBLE_EQ(seconds(served_problem()), seconds(own));
}

TEST(ServedPlans, ASimulationHasTheUpdateWithItsSecondsAndBytes) {
  const auto problem = served_problem();
  const CostModel costs(problem);
  const auto plan = search_plan(problem, costs, {}).best.plan;
  const auto run = simulate(problem, costs, plan);
  const auto update = run.graph.index_of("update actor@actor_gen");
  EXPECT_GT(run.durations_s[update], 0);
  const auto model = 4.0 * double(num_parameters(problem.shapes.at("actor")));
  const auto servers = plan.calls.at("actor_gen").strategy.dp;
  EXPECT_NEAR(run.moved[update].intra, servers * model, 0.05 * model)
    << "a server per dp rank";
}

TEST(ServedPlans, AnUpdateOfAdaptersHasTheirBytesAlone) {
  auto problem = served_problem();
  auto& shape = problem.shapes.at("actor");
  shape.lora = {.rank = 16, .alpha = 16, .targets = lora_targets(shape)};
  double count = 0;
  for (const auto& adapter : adapters(shape))
    count += double(adapter.num_elements());
  const auto expected_s = 6 * 4 * count / problem.hardware.host_Bps;
  EXPECT_NEAR(update_seconds(problem), expected_s, 0.05 * expected_s);
}

TEST(ServedPlans, ASearchFindsRoomForServersBesideTraining) {
  auto problem = served_problem();
  const auto peak = [&] {
    const CostModel costs(problem);
    const auto found = search_plan(problem, costs, {});
    const auto report = check_plan(problem, found.best.plan);
    EXPECT_TRUE(report.ok());
    return report.servers.on_device;
  };
  problem.sizes.engine.cache.device_limit = problem.hardware.mem_bytes / 4;
  EXPECT_EQ(peak(), problem.sizes.engine.cache.device_limit);
}

} // namespace
} // namespace troupe::plans
