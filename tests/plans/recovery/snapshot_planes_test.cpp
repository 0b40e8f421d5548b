#include "plans/presets/presets.hpp"
#include "plans/recovery/snapshot_planes.hpp"
#include "plans/weights/layout.hpp"

#include <gtest/gtest.h>

#include "tests/support/plans/support.hpp"

#include <map>
#include <string>

namespace troupe::plans {
namespace {

class SnapshotBytes : public ::testing::Test {
protected:
  std::uint64_t bytes(const ExecutionPlan& plan) {
    return snapshot_bytes(workflow_, plan, shapes_).own;
  }
  ModelShape shape_{.family = "llama",
                    .vocab_size = 64,
                    .hidden_size = 16,
                    .num_layers = 2,
                    .num_heads = 2,
                    .num_kv_heads = 2,
                    .head_dim = 8,
                    .intermediate_size = 32,
                    .max_positions = 64,
                    .rope = {},
                    .windowed_layers = {},
                    .eos = {}};
  Workflow workflow_ = sft_workflow({});
  std::map<std::string, ModelShape> shapes_{{"actor", shape_}};
};

TEST_F(SnapshotBytes, AreTwoSlotsOfWeightsAndMoments) {
  const auto plan = preset("single", workflow_, {});
  const Rank first{0};
  const auto weights
    = make_layout(parameters(shape_), {}, {&first, 1}, DType::f32).shards[0];
  EXPECT_EQ(bytes(plan), 2 * 3 * weights.size_bytes);
}

TEST_F(SnapshotBytes, CountEqualPlanesOfANodeOnce) {
  auto plan = preset("single", workflow_, {});
  const auto single = bytes(plan);
  plan.cluster.devices_per_node = 2;
  auto& placement = plan.calls.at("actor_train");
  placement.devices = {Rank{0}, Rank{1}};
  placement.strategy = {.dp = 2};
  EXPECT_EQ(bytes(plan), single);
  plan.cluster = {.nodes = 2, .devices_per_node = 1};
  EXPECT_EQ(bytes(plan), single) << "of the host that needs most";
}

TEST_F(SnapshotBytes, CountCopiesOfWhatOneNodeAloneHolds) {
  auto plan = preset("single", workflow_, {});
  const auto all
    = [&] { return snapshot_bytes(workflow_, plan, shapes_).with_copies; };
  const auto single = bytes(plan);
  EXPECT_EQ(all(), single) << "there is no other node";
  auto& placement = plan.calls.at("actor_train");
  placement.devices = {Rank{0}, Rank{1}};
  plan.cluster = {.nodes = 2, .devices_per_node = 1};
  placement.strategy = {.dp = 2};
  EXPECT_EQ(all(), single) << "each node holds all of it";
  placement.strategy = {.tp = 2};
  EXPECT_EQ(all(), 2 * bytes(plan));
  EXPECT_GE(bytes(plan), single / 2);
}

TEST(SnapshotReplicas, AreThoseThatNoMoveRefreshes) {
  const auto workflow = make_ppo();
  const auto plan
    = preset("separation", workflow, {.nodes = 1, .devices_per_node = 4});
  for (const auto& replica : replicas_of(workflow, plan).all) {
    const bool trained = workflow.role(replica.role).trained;
    EXPECT_EQ(is_in_snapshots(workflow, plan, replica), trained && replica.home)
      << replica.name();
  }
}

} // namespace
} // namespace troupe::plans
