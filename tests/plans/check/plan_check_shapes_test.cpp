// Broken plans whose mistake depends on a model's shape or a machine, each with
// its exact message, and the parts of a plan that this version plans but does
// not run.
#include "plans/check/plan_check.hpp"

#include "tests/support/plans/problem_support.hpp"
#include <gmock/gmock.h>

using ::testing::EndsWith, ::testing::HasSubstr, ::testing::Not;
using ::testing::StartsWith;

namespace troupe::plans {
namespace {

/// PPO of 6 heads, 3 KV heads, 5 layers on 12 devices.
struct ShapeCase {
  PlanProblem problem;
  ExecutionPlan plan;

  ShapeCase() {
    problem = make_problem(llama_shape(5, 192, 512, 6, 3), 1, 12);
    problem.sizes.samples_per_step = 48;
    problem.hardware.mem_bytes = 0;
    plan = plan_all(problem.workflow, on(0, 11), 12);
  }
  ShapeCase& set(const char* call, const char* strategy) {
    plan.calls[call].strategy = parse_strategy(strategy);
    return *this;
  }
  /// Returns all errors as "path: message".
  std::string errors() const {
    std::string text;
    for (const auto& mistake : check_plan(problem, plan).errors)
      text
        += (text.empty() ? "" : "\n") + mistake.path + ": " + mistake.message;
    return text;
  }
};

TEST(PlanCheckShapes, TensorDegreesFollowTheHeads) {
  EXPECT_EQ(
    ShapeCase().set("rew_inf", "d3t4").errors(),
    "calls.rew_inf.strategy: expected tensor parallelism (t) that divides 6 "
    "heads, and divides or is a multiple of 3 KV heads (as t3 or t6), got "
    "d3t4; try d4t3");
  EXPECT_EQ(
    ShapeCase().set("ref_inf", "d6t2").errors(),
    "calls.ref_inf.strategy: expected tensor parallelism (t) that divides 6 "
    "heads, and divides or is a multiple of 3 KV heads (as t1 or t3), got "
    "d6t2; try d12");
  EXPECT_EQ(ShapeCase().set("actor_train", "t12").errors(),
            "calls.actor_train.strategy: expected tensor parallelism (t) that "
            "divides 6 heads, and divides or is a multiple of 3 KV heads (as "
            "t6), got t12; try "
            "d2t6");
  EXPECT_EQ(ShapeCase().set("actor_gen", "d2t6").errors(), "");
  EXPECT_EQ(ShapeCase().set("actor_gen", "d4t3").errors(), "");
}

TEST(PlanCheckShapes, TheSuggestedStrategyFitsTheModel) {
  ShapeCase one;
  one.plan.calls["rew_inf"] = on(0, 7);
  one.set("rew_inf", "t4"); // neither 6 heads in fours nor 3 in twos
  EXPECT_EQ(one.errors(), "calls.rew_inf.strategy: expected a strategy for 8 "
                          "devices (0-7), got t4, which is for 4; try d8");
  one.plan.calls["rew_inf"] = on(0, 5);
  one.set("rew_inf", "p9"); // 5 layers
  EXPECT_EQ(one.errors(), "calls.rew_inf.strategy: expected a strategy for 6 "
                          "devices (0-5), got p9, which is for 9; try d2p3");
}

TEST(PlanCheckShapes, TheSuggestedStrategyKeepsDegreesThatDivideTheDevices) {
  const auto with = [](const char* strategy) {
    ShapeCase one;
    one.problem = make_problem(shape_7b(), 1, 8);
    one.problem.hardware.mem_bytes = 0;
    one.plan = plan_all(one.problem.workflow, on(0, 7), 8);
    return one.set("rew_inf", strategy).errors();
  };
  EXPECT_THAT(with("t9"), HasSubstr("got t9, which is for 9; try t8"));
  EXPECT_THAT(with("p64"), HasSubstr("got p64, which is for 64; try p8"));
  EXPECT_THAT(with("d5t2"), HasSubstr("got d5t2, which is for 10; try d4t2"));
  EXPECT_THAT(with("d4p2t4z3"), HasSubstr("which is for 32; try p2t4"));
}

TEST(PlanCheckShapes, EveryStageNeedsALayer) {
  EXPECT_EQ(ShapeCase().set("critic_inf", "d2p6").errors(),
            "calls.critic_inf.strategy: expected at most p5, as many stages as "
            "the model has layers, got d2p6; try d3p4");
  EXPECT_EQ(ShapeCase().set("critic_inf", "d3p4").errors(), "");
}

TEST(PlanCheckShapes, SequenceParallelismNeedsTensorParallelism) {
  EXPECT_EQ(ShapeCase().set("actor_train", "d12s").errors(),
            "calls.actor_train.strategy: expected t2 or more for sequence "
            "parallelism (s), got d12s; try d12");
}

TEST(PlanCheckShapes, ShardedTrainingNeedsSamplesForEveryDevice) {
  ShapeCase one;
  one.problem.sizes.mini_batches = 12;
  one.set("actor_train", "d12z3");
  one.set("critic_train", "d4t3");
  EXPECT_EQ(one.errors(),
            "calls.actor_train.strategy: expected at most d4, as many dp ranks "
            "as a mini-batch has samples, got d12z3; try d4z3 on 4 devices");
  one.set("actor_train", "d6t2");
  one.problem.shapes["actor"] = llama_shape(5, 192, 512, 6, 6);
  EXPECT_EQ(one.errors(),
            "calls.actor_train.strategy: expected at most d4, as many dp ranks "
            "as a mini-batch has samples, got d6t2; try d4t2 on 8 devices");
}

TEST(PlanCheckShapes, OnlyCallsThatCanBeSplitMayHaveChunks) {
  const auto with = [](const char* call, int chunks) {
    ShapeCase one;
    one.plan.calls[call].chunks = chunks;
    return one.errors();
  };
  EXPECT_EQ(with("actor_train", 2),
            "calls.actor_train.chunks: expected 1, for a training joins all "
            "chunks, got 2; try 1");
  EXPECT_EQ(with("advantages", 2),
            "calls.advantages.chunks: expected 1, for advantages wants the "
            "whole batch, got 2; try 1");
  EXPECT_EQ(with("actor_gen", 49),
            "calls.actor_gen.chunks: expected 1 to 48, the rows of a step, got "
            "49; try 48");
  EXPECT_EQ(
    with("rew_inf", 0),
    "calls.rew_inf.chunks: expected 1 to 48, the rows of a step, got 0; try "
    "1");
  EXPECT_EQ(with("actor_gen", 4), "");
}

TEST(PlanCheckShapes, OnlyTrainedRolesHaveAnOptimizer) {
  ShapeCase one;
  one.plan.roles["ref"].offload_optimizer = true;
  EXPECT_EQ(
    one.errors(),
    "roles.ref.offload: expected weights at most, for ref is never trained, "
    "got optimizer; try leaving it out");
  one.plan.roles["ref"] = {.offload_weights = true};
  one.plan.roles["actor"] = {.offload_optimizer = true};
  EXPECT_EQ(one.errors(), "");
}

TEST(PlanCheckShapes, MemoryNamesDevicesTaskAndNumbers) {
  auto problem = make_problem(shape_7b(), 1, 8);
  auto plan = plan_all(problem.workflow, on(0, 7), 8);
  const auto report = check_plan(problem, plan);
  ASSERT_EQ(report.errors.size(), 1u) << "one for devices that are alike";
  EXPECT_EQ(report.errors[0].path, "calls.actor_gen") << "its KV cache";
  EXPECT_THAT(report.errors[0].message,
              HasSubstr("expected at most 76 GB on devices 0-7, got "));
  EXPECT_THAT(report.errors[0].message,
              HasSubstr(" of it weights, gradients and optimizer; try d8z3 for "
                        "actor_train, fewer calls on it or a smaller "
                        "micro_batch_tokens"));
}

TEST(PlanCheckShapes, RecomputationIsSuggestedWhereItIsEnough) {
  ShapeCase one;
  one.problem.hardware.reserve_bytes = 0;
  auto& recomputes = one.problem.sizes.recompute_activations;
  const auto peak = [&](bool recompute) {
    recomputes = recompute;
    return check_plan(one.problem, one.plan).devices[0].peak_bytes;
  };
  const auto kept = peak(false), recomputed = peak(true);
  ASSERT_GT(kept, recomputed);
  recomputes = false;
  one.problem.hardware.mem_bytes = double(kept - 1);
  EXPECT_THAT(one.errors(), StartsWith("calls.actor_train: expected at most "));
  EXPECT_THAT(one.errors(),
              EndsWith("optimizer; try algorithm.recompute=true"));
  one.problem.hardware.mem_bytes = double(recomputed);
  EXPECT_THAT(one.errors(), EndsWith("; try algorithm.recompute=true"));
  recomputes = true;
  EXPECT_EQ(one.errors(), "") << "what the line says fits";
  recomputes = false;
  one.problem.hardware.mem_bytes = double(recomputed - 1);
  EXPECT_THAT(one.errors(), HasSubstr("; try "));
  EXPECT_THAT(one.errors(), Not(HasSubstr("recompute")));
}

TEST(PlanCheckShapes, DevicesThatLackDifferentMemoryAreDifferentErrors) {
  auto problem = make_problem(shape_7b(), 1, 8);
  auto plan = plan_all(problem.workflow, on(0, 7), 8);
  plan.calls["rew_inf"] = on(0, 3);
  plan.calls["rew_inf"].strategy = {.dp = 4};
  const auto report = check_plan(problem, plan);
  ASSERT_EQ(report.errors.size(), 2u);
  EXPECT_THAT(report.errors[0].message, HasSubstr("on devices 0-3, got "));
  EXPECT_THAT(report.errors[1].message, HasSubstr("on devices 4-7, got "));
}

} // namespace
} // namespace troupe::plans
