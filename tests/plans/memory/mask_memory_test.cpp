// Hosts whose memory has sampling masks. That rows and readers take these bytes
// is tested in tests/models/engine/sampling_mask_test.cpp.
#include "plans/memory/mask_memory.hpp"

#include <gtest/gtest.h>

#include "tests/support/plans/support.hpp"

namespace troupe::plans {
namespace {

constexpr std::int64_t top_k = 50;

Workflow masked_grpo() {
  return make_grpo([](Settings& settings) {
    settings.algorithm.loss.sampling_mask = true;
    settings.algorithm.old_logprobs = "recompute";
    settings.reward.kind = "rule";
  });
}

BatchSizes sizes() {
  return {.samples_per_step = 64,
          .mini_batches = 4,
          .max_sequence_tokens = 300,
          .max_new_tokens = 200,
          .micro_batch_tokens = 1200};
}

TEST(MaskMemory, IsFourBytesForEachIdOfAResponseToken) {
  EXPECT_EQ(mask_row_bytes(sizes(), 64, top_k), 64 * 4 * (200 * 50 + 300));
  EXPECT_NEAR(double(mask_row_bytes(sizes(), 64, top_k)),
              4.0 * top_k * 64 * 200, 0.05 * 4 * top_k * 64 * 200)
    << "counts are little beside ids";
}

TEST(MaskMemory, OfOtherWorkflowsIsNothing) {
  const auto grpo = make_grpo();
  EXPECT_EQ(mask_bytes(grpo, plan_all(grpo, on(0, 3), 4), sizes(), top_k).all(),
            0u);
}

TEST(MaskMemory, RowsAreStoredOnceAndReadByEveryDevice) {
  const auto grpo = masked_grpo();
  const auto rows = mask_row_bytes(sizes(), 64, top_k);
  const auto batch = mask_batch_bytes(sizes(), 4, top_k);
  const auto apart
    = mask_bytes(grpo, plan_all(grpo, on(0, 3), 4), sizes(), top_k);
  EXPECT_EQ(apart.stored, rows);
  EXPECT_EQ(apart.read, rows + 4 * batch) << "a quarter for each device";
  const Placement tensor{.devices = ranks(0, 3), .strategy = {.tp = 4}};
  const auto together
    = mask_bytes(grpo, plan_all(grpo, tensor, 4), sizes(), top_k);
  EXPECT_EQ(together.stored, rows);
  EXPECT_EQ(together.read, 4 * (rows + batch)) << "all of them";
  const Placement cut{.devices = ranks(0, 3), .strategy = {.dp = 4, .cp = 2}};
  const auto in_pairs
    = mask_bytes(grpo, plan_all(grpo, cut, 4), sizes(), top_k);
  EXPECT_EQ(in_pairs.stored, rows);
  EXPECT_EQ(in_pairs.read, 4 * (rows / 2 + batch)) << "a half for each device";
  const Placement stages{.devices = ranks(0, 3), .strategy = {.pp = 4}};
  EXPECT_LT(mask_bytes(grpo, plan_all(grpo, stages, 4), sizes(), top_k).read,
            4 * rows + 2 * batch)
    << "the last stage alone has logits";
}

TEST(MaskMemory, IsThatOfTheHostWithMost) {
  const auto grpo = masked_grpo();
  auto plan = plan_all(grpo, on(0, 7), 4);
  plan.cluster.nodes = 2;
  const auto rows = mask_row_bytes(sizes(), 64, top_k);
  EXPECT_EQ(mask_bytes(grpo, plan, sizes(), top_k).stored, rows / 2);
  plan.calls["actor_gen"] = on(4, 7); // all are made there
  EXPECT_EQ(mask_bytes(grpo, plan, sizes(), top_k).stored, rows);
}

TEST(MaskMemory, StepsAheadAndRoundsStoreMore) {
  const auto grpo = masked_grpo();
  auto plan = plan_all(grpo, on(0, 3), 4);
  const auto now = mask_bytes(grpo, plan, sizes(), top_k).stored;
  plan.lag["actor_gen"] = 2;
  EXPECT_EQ(mask_bytes(grpo, plan, sizes(), top_k).stored, 3 * now);
  const auto rounds = make_grpo([](Settings& settings) {
    settings.algorithm.loss.sampling_mask = true;
    settings.algorithm.group.rounds = 3;
    settings.reward.kind = "rule";
    settings.rollout.n = 4;
  });
  EXPECT_EQ(
    mask_bytes(rounds, plan_all(rounds, on(0, 3), 4), sizes(), top_k).stored,
    3 * now);
}

} // namespace
} // namespace troupe::plans
