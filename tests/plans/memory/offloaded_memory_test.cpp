// Host memory of planes that leave their devices: once each, on the node of the
// device, and plans whose nodes have too little of it.
#include "plans/memory/memory_model.hpp"
#include "plans/memory/offloaded_memory.hpp"

#include "tests/support/plans/problem_support.hpp"
#include <gmock/gmock.h>

using ::testing::HasSubstr;

namespace troupe::plans {
namespace {

/// PPO of tiny models stored in fp32 on two nodes of two devices, the actor on
/// all of them.
struct OffloadCase {
  PlanProblem problem;
  ExecutionPlan plan;

  OffloadCase() {
    problem = make_problem(shape_tiny(), 2, 2);
    problem.sizes.engine = {};
    plan = plan_all(problem.workflow, on(0, 3), 2);
    plan.cluster.nodes = 2;
  }
  std::map<std::uint32_t, std::uint64_t> by_node() const {
    return offloaded_bytes_by_node(
      problem.workflow, plan, replicas_of(problem.workflow, plan),
      problem.shapes, problem.dtypes, problem.sizes);
  }
  StageBytes planes() const {
    return stage_bytes(problem.shapes.at("actor"), {}).front();
  }
};

TEST(OffloadedMemory, IsNoneWherePlanesStay) {
  EXPECT_TRUE(OffloadCase().by_node().empty());
}

TEST(OffloadedMemory, IsEachPlaneOnceOnTheNodeOfItsDevice) {
  OffloadCase one;
  one.plan.roles["actor"].offload_optimizer = true;
  const auto moments = 2 * one.planes().optimizer; // of a node's two devices
  EXPECT_EQ(one.by_node(), (std::map<std::uint32_t, std::uint64_t>{
                             {0, moments}, {1, moments}}));
  one.plan.roles["actor"].offload_weights = true;
  EXPECT_EQ(one.by_node().at(0), moments + 2 * one.planes().weights);
}

TEST(OffloadedMemory, ShardsTakeTheirPart) {
  OffloadCase one;
  one.plan.roles["actor"].offload_optimizer = true;
  const auto whole = one.by_node().at(0);
  for (auto& [call, place] : one.plan.calls)
    if (!place.devices.empty())
      place.strategy = parse_strategy("t4");
  EXPECT_LT(one.by_node().at(0), whole / 3);
}

TEST(OffloadedMemory, OfMoreThanAHostHasIsRefused) {
  OffloadCase one;
  one.plan.roles["actor"].offload_optimizer = true;
  const auto bytes = one.by_node().at(0);
  one.problem.hardware.host_mem_bytes = double(bytes);
  const auto fits = check_plan(one.problem, one.plan);
  EXPECT_TRUE(fits.ok()) << mistake_line(fits.errors.front());
  EXPECT_EQ(fits.offloaded_bytes, bytes);
  one.problem.hardware.host_mem_bytes = double(bytes - 1);
  const auto report = check_plan(one.problem, one.plan);
  ASSERT_EQ(report.errors.size(), 2U) << "a node each";
  EXPECT_THAT(mistake_line(report.errors.front()),
              HasSubstr("of host memory on node 0, got"));
  EXPECT_THAT(mistake_line(report.errors.front()),
              HasSubstr("GB for offloaded planes; try offload of fewer roles "
                        "or more nodes"));
}

TEST(OffloadedMemory, CountsBesideServers) {
  OffloadCase one;
  one.plan.roles["critic"].offload_optimizer = true;
  one.problem.rules.servers = 0;
  one.problem.sizes.engine.serves = true;
  const auto planes = one.by_node().at(0);
  const auto both
    = planes + check_plan(one.problem, one.plan).servers.on_host();
  ASSERT_GT(both, planes);
  one.problem.hardware.host_mem_bytes = double(both);
  EXPECT_TRUE(check_plan(one.problem, one.plan).ok());
  one.problem.hardware.host_mem_bytes = double(both - 1);
  EXPECT_FALSE(check_plan(one.problem, one.plan).ok());
}

} // namespace
} // namespace troupe::plans
