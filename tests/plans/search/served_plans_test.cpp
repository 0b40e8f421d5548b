// Searches for runs whose responses come from servers (rollout.engine).
#include "plans/search/search.hpp"

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

TEST(ServedPlans, AGenerationBeginsWithTheUpdateOfItsServer) {
  auto problem = make_problem(shape_7b(), 1, 8);
  const auto seconds = [&] {
    const CostModel costs(problem);
    const Placement place{.devices = {Rank{0}, Rank{1}},
                          .strategy = parse_strategy("t2")};
    return costs.call_s(problem.workflow.call("actor_gen"), place);
  };
  const auto own = seconds();
  problem.sizes.engine.serves = true;
  const auto bytes = 4.0 * double(num_parameters(problem.shapes.at("actor")));
  const auto passes = 6; // read, written, summed by us; by the server again
  EXPECT_NEAR(seconds() - own, passes * bytes / problem.hardware.host_Bps,
              0.05 * (seconds() - own));
}

TEST(ServedPlans, AnUpdateOfAdaptersHasTheirBytesAlone) {
  auto problem = make_problem(shape_7b(), 1, 8);
  auto& shape = problem.shapes.at("actor");
  shape.lora = {.rank = 16, .alpha = 16, .targets = lora_targets(shape)};
  double count = 0;
  for (const auto& adapter : adapters(shape))
    count += double(adapter.num_elements());
  const auto seconds = [&] {
    const CostModel costs(problem);
    return costs.call_s(
      problem.workflow.call("actor_gen"),
      {.devices = {Rank{0}, Rank{1}}, .strategy = parse_strategy("t2")});
  };
  const auto own = seconds();
  problem.sizes.engine.serves = true;
  const auto update_s = 6 * 4 * count / problem.hardware.host_Bps;
  EXPECT_NEAR(seconds() - own, update_s, 0.05 * update_s);
}

} // namespace
} // namespace troupe::plans
