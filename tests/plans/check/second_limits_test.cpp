// Plans for conversations of several models: all are on the devices of the call
// in its strategy.
#include "plans/check/plan_check.hpp"

#include "tests/support/plans/check_case.hpp"
#include "tests/support/plans/problem_support.hpp"
#include <gmock/gmock.h>

using ::testing::HasSubstr;

namespace troupe::plans {
namespace {

/// Breaks a plan for PPO with an opponent.
std::string with_opponent(const BreakCase& break_it = {}) {
  return broken([&](CheckCase& c) {
    c.workflow = make_ppo_with_opponent();
    c.plan = plan_all(c.workflow, on(0, 3), 4);
    if (break_it)
      break_it(c);
  });
}

TEST(SecondLimits, ASecondRoleNeedsNoLineOfItsOwn) {
  EXPECT_EQ(with_opponent(), "");
}

TEST(SecondLimits, TheStrategyMustFitAllModels) {
  const auto fits = [](std::int64_t layers) {
    return with_opponent([layers](CheckCase& c) {
      c.context.shapes["opponent"] = llama_shape(layers, 64, 128, 4, 4);
      c.plan.calls["actor_gen"].strategy = parse_strategy("p4");
    });
  };
  EXPECT_EQ(fits(4), "");
  EXPECT_THAT(fits(2),
              HasSubstr("calls.actor_gen: opponent speaks too (with): "));
}

TEST(SecondLimits, OurOwnEngineGenerates) {
  EXPECT_THAT(with_opponent([](CheckCase& c) { c.context.servers = 0; }),
              HasSubstr("calls.actor_gen: expected our own engine, as opponent "
                        "speaks too (with), got another (rollout.engine); try "
                        "rollout.engine=own"));
}

TEST(SecondLimits, WeightsStayOnTheDevices) {
  EXPECT_THAT(
    with_opponent(
      [](CheckCase& c) { c.plan.roles["opponent"].offload_weights = true; }),
    HasSubstr("roles.opponent.offload: expected nothing, for opponent "
              "speaks in conversations of another role"));
}

TEST(SecondLimits, EvaluationsRunWhereGenerationIs) {
  const auto evaluated = [](const Placement& generation) {
    return with_opponent([&](CheckCase& c) {
      Settings settings;
      settings.eval.data = "eval.jsonl";
      c.context.evaluation = evaluation_in(c.workflow, settings, 64);
      c.plan.calls["actor_gen"] = generation;
    });
  };
  EXPECT_EQ(evaluated(on(0, 3)), "");
  EXPECT_THAT(
    evaluated(on(0, 1)),
    HasSubstr("expected the place of actor's training with eval.data, "
              "as opponent speaks too (with): devices 0-3, strategy "
              "d4, got devices 0-1, strategy d2; try "
              "eval.data=null"));
}

} // namespace
} // namespace troupe::plans
