// Plans with slices that cannot run, with the exact message that a user reads.
#include "plans/check/plan_check.hpp"

#include "tests/support/plans/check_case.hpp"
#include <gmock/gmock.h>

namespace troupe::plans {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string broken_slices(const char* call,
                          const std::function<void(CheckCase&)>& change = {}) {
  return broken([&](CheckCase& c) {
    c.context.sizes.max_new_tokens = 8;
    c.plan.calls[call].slices = 4;
    if (change)
      change(c);
  });
}

TEST(PlanCheckSlices, OnlyGenerationsThatCanBeCutAreInSlices) {
  EXPECT_EQ(broken_slices("actor_gen"), "");
  EXPECT_EQ(broken_slices("rew_inf"),
            "calls.rew_inf.slices: expected 1, for rew_inf generates nothing, "
            "got 4; try 1");
  EXPECT_EQ(
    broken_slices(
      "actor_gen",
      [](CheckCase& c) { c.workflow.calls.front().by.user_actor = true; }),
    "calls.actor_gen.slices: expected 1, for an actor leads the conversations "
    "of actor_gen, turn by turn, got 4; try 1");
  EXPECT_EQ(
    broken_slices("actor_gen",
                  [](CheckCase& c) { c.plan.calls["actor_gen"].chunks = 2; }),
    "calls.actor_gen.slices: expected 1, for a call is in chunks or in slices, "
    "got 4; try 1");
  EXPECT_EQ(
    broken_slices(
      "actor_gen",
      [](CheckCase& c) { c.plan.roles["actor"].offload_weights = true; }),
    "calls.actor_gen.slices: expected 1, for weights of actor leave the device "
    "between calls, got 4; try 1");
  EXPECT_EQ(
    broken_slices(
      "actor_gen",
      [](CheckCase& c) { c.workflow.calls.front().rows.rounds = 2; }),
    "calls.actor_gen.slices: expected 1, for rounds of dynamic sampling choose "
    "after whole responses, got 4; try 1");
}

TEST(PlanCheckSlices, SlicesAreNoMoreThanTokensAndLagsAllow) {
  EXPECT_EQ(
    broken_slices("actor_gen",
                  [](CheckCase& c) { c.context.sizes.max_new_tokens = 3; }),
    "calls.actor_gen.slices: expected 1 to 3, the new tokens of a response, "
    "got 4; try 3");
  EXPECT_EQ(
    broken_slices("actor_gen",
                  [](CheckCase& c) { c.plan.lag["actor_gen"] = 7; }),
    "calls.actor_gen.slices: expected 1 to 2, for the first of more slices "
    "would lag more than 8 steps, got 4; try 2");
}

TEST(PlanCheckSlices, WarnsOfSlicesThatTheLossDoesNotCorrectFor) {
  const auto report = report_of([](CheckCase& c) {
    c.plan.calls["actor_gen"].slices = 2;
    c.context.corrects_for_lag = false;
  });
  EXPECT_THAT(report.warnings, ElementsAre(HasSubstr(
                                 "calls.actor_gen.slices: the loss does not "
                                 "correct for samples of an older version")));
}

} // namespace
} // namespace troupe::plans
