#include "config/base/error.hpp"
#include "plans/plan/execution_plan.hpp"

#include "tests/support/plans/support.hpp"
#include <gmock/gmock.h>

#include <random>
#include <stdexcept>

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

namespace troupe::plans {
namespace {

/// A plan with most of what a plan can contain (docs/planning.md).
constexpr const char* example_plan = R"(
cluster: {nodes: 1, devices_per_node: 8}
calls:
  actor_gen:    {devices: 0-3, strategy: d2t2, chunks: 4}
  rew_inf:      {devices: 0-1, strategy: d2}
  ref_inf:      {devices: 2-3, strategy: t2}
  critic_inf:   {devices: 0-3, strategy: d4}
  advantages:   {devices: host}
  actor_train:  {devices: 4-7, strategy: d2p2z1, micro_batch_tokens: 8192}
  critic_train: {devices: 4-7, strategy: d4z1}
replicas:
  actor@actor_gen: {keep: true}
roles:
  ref:   {offload: [weights]}
  actor: {offload: [optimizer]}
lag: {actor_gen: 1}
)";

std::string mistake(const std::string& yaml) {
  return refusal_of([&] { parse_plan(yaml, "plan.yaml"); });
}

TEST(ExecutionPlan, ReadsTheDocumentedExample) {
  const auto plan = parse_plan(example_plan, "plan.yaml");
  EXPECT_EQ(plan.cluster.devices_per_node, 8u);
  EXPECT_EQ(plan.calls.at("actor_gen").devices, ranks(0, 3));
  EXPECT_EQ(plan.calls.at("actor_gen").chunks, 4);
  EXPECT_EQ(plan.calls.at("actor_train").strategy,
            (Strategy{.dp = 2, .pp = 2, .zero = Zero::z1}));
  EXPECT_EQ(plan.calls.at("actor_train").micro_batch_tokens, 8192);
  EXPECT_TRUE(plan.calls.at("advantages").devices.empty());
  EXPECT_TRUE(plan.replicas.at("actor@actor_gen"));
  EXPECT_TRUE(plan.roles.at("ref").offload_weights);
  EXPECT_FALSE(plan.roles.at("actor").offload_weights);
  EXPECT_EQ(plan.lag_of("actor_gen"), 1u);
  EXPECT_EQ(plan.lag_of("rew_inf"), 0u);
}

TEST(ExecutionPlan, PrintedPlansParseBackEqual) {
  const auto plan = parse_plan(example_plan, "plan.yaml");
  const auto again = parse_plan(print(plan), "printed");
  EXPECT_EQ(again, plan);
  EXPECT_EQ(print(again), print(plan));
  EXPECT_EQ(hash(again), hash(plan));
}

Placement random_placement(std::mt19937_64& random) {
  const auto draw = [&](std::uint32_t below) { return random() % below; };
  Placement placement;
  for (std::uint32_t d = 0; d < 12; ++d)
    if (draw(3) == 0)
      placement.devices.emplace_back(d);
  placement.strategy = {.dp = std::uint32_t(1 + draw(4)),
                        .tp = std::uint32_t(1 + draw(2)),
                        .zero = draw(2) ? Zero::z3 : Zero::none,
                        .cp = std::uint32_t(1 + draw(3))};
  placement.strategy.dp *= placement.strategy.cp;
  placement.chunks = int(1 + draw(3));
  placement.slices = int(1 + draw(3));
  placement.micro_batches = int(draw(3));
  placement.micro_batch_tokens = std::int64_t(draw(2) * 4096);
  return placement;
}

ExecutionPlan random_plan_of_yaml(std::mt19937_64& random) {
  const auto draw = [&](std::uint32_t below) { return random() % below; };
  ExecutionPlan plan;
  plan.cluster = {.nodes = std::uint32_t(1 + draw(4)),
                  .devices_per_node = std::uint32_t(4 + draw(8)),
                  .workers_per_node = std::uint32_t(1 + draw(4))};
  for (std::uint32_t i = 0; i <= draw(6); ++i) {
    const auto name = "call_" + std::to_string(i);
    plan.calls[name] = random_placement(random);
    if (draw(2))
      plan.lag[name] = std::uint32_t(draw(3));
    if (draw(2))
      plan.replicas["role@" + name] = draw(2) != 0;
  }
  plan.roles["actor"]
    = {.offload_weights = draw(2) != 0, .offload_optimizer = draw(2) != 0};
  return plan;
}

TEST(ExecutionPlan, RandomPlansRoundTripThroughYaml) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 300; ++round) {
    const auto plan = random_plan_of_yaml(random);
    ASSERT_EQ(parse_plan(print(plan), "printed"), plan) << print(plan);
  }
}

TEST(ExecutionPlan, HashesDifferAndAreStable) {
  auto plan = parse_plan(example_plan, "plan.yaml");
  const auto before = hash(plan);
  plan.lag["actor_gen"] = 2;
  EXPECT_NE(hash(plan), before);
  EXPECT_EQ(hash(ExecutionPlan{}), hash(ExecutionPlan{}));
}

TEST(ExecutionPlan, DeviceListsParseAndPrint) {
  EXPECT_EQ(parse_devices("0-3"), ranks(0, 3));
  EXPECT_THAT(parse_devices("5,0,2-3"),
              ElementsAre(Rank{0}, Rank{2}, Rank{3}, Rank{5}));
  EXPECT_TRUE(parse_devices("host").empty());
  for (const auto* text : {"0-3", "0,2-3", "host", "7", "0,2,4-6"})
    EXPECT_EQ(print_devices(parse_devices(text)), text);
  for (const auto* text : {"", "a", "0-", "-3", "0,,1", "3-1", "0,0", "0-3x",
                           "0 1", "99999999999", "2000000", "Host"})
    EXPECT_THROW(parse_devices(text), std::invalid_argument) << text;
}

TEST(ExecutionPlan, MistakesNameLineAndNearestWord) {
  EXPECT_EQ(mistake("clusters: {nodes: 1}\n"),
            "plan.yaml:1: clusters: expected one of cluster, calls, replicas, "
            "roles, lag, got 'clusters'; try cluster");
  EXPECT_EQ(mistake("calls:\n  a: {device: 0-3}\n"),
            "plan.yaml:2: calls.a.device: expected one of devices, strategy, "
            "micro_batch_tokens, micro_batches, chunks, slices, instances, got "
            "'device'; try devices");
  EXPECT_EQ(mistake("calls:\n  a: {devices: 0..3}\n"),
            "plan.yaml:2: calls.a.devices: expected devices, got '0..3' (no "
            "list such as 0,2-3); try 0-3, [0, 2-3] or host");
  EXPECT_EQ(mistake("calls:\n  a: {devices: 3-0}\n"),
            "plan.yaml:2: calls.a.devices: expected devices, got '3-0' (3-0 "
            "runs backwards, write 0-3); try 0-3, [0, 2-3] or host");
  EXPECT_THAT(mistake("calls:\n  a: {devices: 0,4}\n"),
              HasSubstr("try [0, 2-3] inside braces"));
  EXPECT_THAT(mistake("calls:\n  a: {devices: 0, strategy: x2}\n"),
              AllOf(HasSubstr("plan.yaml:2: calls.a.strategy: expected a "
                              "strategy, got 'x2' ("),
                    HasSubstr("); try d4 or d2t2")));
  EXPECT_THAT(mistake("calls:\n  a: {strategy: d2}\n"),
              HasSubstr("plan.yaml:2: calls.a.devices: expected devices"));
  EXPECT_THAT(mistake("calls: {a: {devices: 0, chunks: 0}}\n"),
              HasSubstr("plan.yaml:1: calls.a.chunks: expected "));
  EXPECT_THAT(mistake("calls: [a]\n"), HasSubstr("expected a mapping"));
  EXPECT_THAT(mistake("lag: {a: -1}\n"), HasSubstr("plan.yaml:1: lag.a: "));
  EXPECT_THAT(mistake("lag: {a: often}\n"), HasSubstr("plan.yaml:1: lag.a: "));
  EXPECT_THAT(mistake("roles: {ref: {offload: [weight]}}\n"),
              HasSubstr("got 'weight'; try weights"));
  EXPECT_THAT(mistake("roles: {ref: {offload: weights}}\n"),
              HasSubstr("expected a list of weights, optimizer"));
  EXPECT_THAT(mistake("replicas: {a@b: {kept: true}}\n"),
              HasSubstr("try keep"));
  EXPECT_THAT(mistake("cluster: {devices_per_node: 0}\n"),
              HasSubstr("cluster.devices_per_node: expected "));
  EXPECT_THAT(mistake("cluster: {devices_per_node: 2, workers_per_node: 3}\n"),
              HasSubstr("expected at most 2 workers, one a device, got '3'; "
                        "try 2"));
  EXPECT_THAT(mistake("cluster: {nodes: 1}\n"),
              HasSubstr("plan.yaml:1: calls: expected a mapping from calls"));
  EXPECT_THAT(mistake("- 1\n"), HasSubstr("expected a mapping"));
  EXPECT_THAT(mistake("calls: {a: {devices: [0\n"), HasSubstr("plan.yaml:"));
}

TEST(Cluster, WorkersShareTheDevicesOfTheirNode) {
  const Cluster even{.nodes = 2, .devices_per_node = 4, .workers_per_node = 2};
  EXPECT_EQ(even.worker_of(Rank{1}), WorkerId{0});
  EXPECT_EQ(even.worker_of(Rank{2}), WorkerId{1});
  EXPECT_EQ(even.worker_of(Rank{7}), WorkerId{3});
  const Cluster odd{.nodes = 1, .devices_per_node = 5, .workers_per_node = 2};
  EXPECT_EQ(odd.devices_of(WorkerId{0}), ranks(0, 2));
  EXPECT_EQ(odd.devices_of(WorkerId{1}), ranks(3, 4));
}

} // namespace
} // namespace troupe::plans
