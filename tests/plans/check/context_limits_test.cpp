// Plans that cut the tokens of samples (c), and each refusal of one with its
// exact message.
#include "plans/check/plan_check.hpp"

#include "tests/support/plans/problem_support.hpp"
#include <gmock/gmock.h>

using ::testing::EndsWith;

namespace troupe::plans {
namespace {

/// PPO with sequences of 4096 tokens on 8 devices.
struct ContextCase {
  PlanProblem problem = make_problem(llama_shape(4, 256, 512, 8, 4), 1, 8);
  ExecutionPlan plan;

  ContextCase() {
    problem.hardware.mem_bytes = 0;
    problem.sizes.max_sequence_tokens = 4096;
    plan = plan_all(problem.workflow, on(0, 7), 8);
  }
  std::string errors(const char* call, const char* strategy) {
    plan.calls[call].strategy = parse_strategy(strategy);
    std::string text;
    for (const auto& mistake : check_plan(problem, plan).errors)
      text
        += (text.empty() ? "" : "\n") + mistake.path + ": " + mistake.message;
    return text;
  }
};

TEST(ContextLimits, TrainingAndInferenceMayCutSequences) {
  for (const auto* strategy :
       {"c8", "d2c2t2", "c4t2z1", "c2p2t2", "d4c2z3", "c2t4s"}) {
    EXPECT_EQ(ContextCase().errors("actor_train", strategy), "") << strategy;
    EXPECT_EQ(ContextCase().errors("ref_inf", strategy), "") << strategy;
  }
}

TEST(ContextLimits, GenerationHasWholeSequences) {
  EXPECT_EQ(ContextCase().errors("actor_gen", "d2c4"),
            "calls.actor_gen.strategy: expected no context parallelism (c) for "
            "a generation, which adds one token at a time, got d2c4; try d8");
}

TEST(ContextLimits, RanksHaveFourTilesOfTheLongestSequence) {
  ContextCase one;
  one.problem.sizes.max_sequence_tokens = 4 * 4 * 96;
  EXPECT_EQ(one.errors("actor_train", "c4t2"), "");
  EXPECT_EQ(one.errors("actor_train", "c8"),
            "calls.actor_train.strategy: expected at most c4, for 384 tokens "
            "of the longest sequence, which has 1536, on each rank, got c8; "
            "try d2c4");
  one.problem.sizes.max_sequence_tokens = 500;
  EXPECT_EQ(one.errors("actor_train", "c8"),
            "calls.actor_train.strategy: expected at most c1, for 384 tokens "
            "of the longest sequence, which has 500, on each rank, got c8; try "
            "d8");
}

TEST(ContextLimits, ExpertsAreNotDealtToDataRanksToo) {
  ContextCase one;
  auto& experts = one.problem.shapes["actor"].experts;
  experts.count = 8;
  experts.per_token = 2;
  experts.width = 64;
  EXPECT_EQ(one.errors("actor_train", "d2c2t2e2"), "");
  EXPECT_EQ(one.errors("actor_train", "d2c2t2e4"),
            "calls.actor_train.strategy: expected no context parallelism (c) "
            "where experts are dealt to data-parallel ranks (at most e2), got "
            "d2c2t2e4; try d2c2t2e2");
}

TEST(ContextLimits, ABalanceLossNeedsWholeSequences) {
  ContextCase one;
  one.problem.rules.balanced_roles = {"actor"};
  EXPECT_EQ(one.errors("actor_train", "d4c2"),
            "calls.actor_train.strategy: expected no context parallelism (c) "
            "with router_aux_loss_coef, which needs whole sequences, got d4c2; "
            "try d8");
  one.plan.calls["actor_train"].strategy = {.dp = 8};
  EXPECT_EQ(one.errors("critic_train", "d4c2"), "");
}

TEST(ContextLimits, SamplesAreDealtToGroups) {
  ContextCase one;
  one.problem.sizes.samples_per_step = 8;
  one.problem.sizes.mini_batches = 4;
  for (auto& [name, placement] : one.plan.calls)
    if (name != "actor_train" && !placement.devices.empty())
      placement.strategy = parse_strategy("d2t4");
  EXPECT_EQ(one.errors("actor_train", "d2c4"), "");
  EXPECT_EQ(one.errors("actor_train", "d4c2z1"),
            "calls.actor_train.strategy: expected at most d2, as many dp ranks "
            "as a mini-batch has samples, got d4c2z1; try d2c2z1 on 4 devices");
}

TEST(ContextLimits, CuttingSequencesIsSuggestedWhereItIsEnough) {
  ContextCase one;
  one.problem.sizes.samples_per_step = 32;
  one.problem.sizes.max_sequence_tokens = 1 << 16;
  one.problem.sizes.max_new_tokens = 256;
  one.problem.hardware.reserve_bytes = 0;
  auto& ref = one.plan.calls["ref_inf"];
  ref.micro_batch_tokens = 1 << 18; // four sequences, the others one
  const auto peak = [&](const char* strategy) {
    one.problem.hardware.mem_bytes = 0;
    EXPECT_EQ(one.errors("ref_inf", strategy), "");
    return check_plan(one.problem, one.plan).devices[0].peak_bytes;
  };
  const auto halves = peak("d4c2"), quarters = peak("d2c4");
  ASSERT_LT(halves, peak("d8"));
  ASSERT_LT(quarters, halves);
  one.problem.hardware.mem_bytes = double(halves);
  EXPECT_THAT(one.errors("ref_inf", "d8"), EndsWith("; try d4c2 for ref_inf"));
  EXPECT_EQ(one.errors("ref_inf", "d4c2"), "");
  one.problem.hardware.mem_bytes = double(halves - 1);
  EXPECT_THAT(one.errors("ref_inf", "d8"), EndsWith("; try d2c4 for ref_inf"));
}

TEST(ContextLimits, TheSuggestedStrategyKeepsTheDegreeThatDividesItsRanks) {
  ContextCase one;
  EXPECT_EQ(one.errors("ref_inf", "d2c2t4"),
            "calls.ref_inf.strategy: expected a strategy for 8 devices (0-7), "
            "got d2c2t4, which is for 16; try c2t4");
  EXPECT_EQ(one.errors("ref_inf", "c2t8"),
            "calls.ref_inf.strategy: expected a strategy for 8 devices (0-7), "
            "got c2t8, which is for 16; try t8");
}

} // namespace
} // namespace troupe::plans
