#include "plans/schedule/slice_versions.hpp"

#include "tests/support/plans/support.hpp"
#include <gmock/gmock.h>

namespace troupe::plans {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ExecutionPlan in_slices(int slices, std::uint32_t lag = 0) {
  auto plan = plan_apart(make_ppo());
  plan.calls["actor_gen"].slices = slices;
  if (lag > 0)
    plan.lag["actor_gen"] = lag;
  return plan;
}

TEST(SliceVersions, LaterTokensAreByNewerWeights) {
  const auto plan = in_slices(3, 1);
  EXPECT_THAT(version_spans(plan, "actor_gen", StepId{7}, 10),
              ElementsAre(VersionSpan{0, Version{4}},
                          VersionSpan{4, Version{5}},
                          VersionSpan{7, Version{6}}));
}

TEST(SliceVersions, FirstStepsHaveFewerVersions) {
  const auto plan = in_slices(3);
  EXPECT_THAT(version_spans(plan, "actor_gen", StepId{0}, 9),
              ElementsAre(VersionSpan{0, Version{0}}));
  EXPECT_THAT(
    version_spans(plan, "actor_gen", StepId{1}, 9),
    ElementsAre(VersionSpan{0, Version{0}}, VersionSpan{6, Version{1}}));
}

TEST(SliceVersions, WithoutSlicesAllTokensHaveTheVersionOfTheLag) {
  EXPECT_THAT(version_spans(in_slices(1, 2), "actor_gen", StepId{5}, 9),
              ElementsAre(VersionSpan{0, Version{3}}));
}

TEST(SliceVersions, OlderTokensAreThoseBeforeTheNewestSpan) {
  const auto spans = version_spans(in_slices(2), "actor_gen", StepId{5}, 8);
  EXPECT_EQ(older_tokens(spans, 3), 3);
  EXPECT_EQ(older_tokens(spans, 4), 4);
  EXPECT_EQ(older_tokens(spans, 8), 4);
}

TEST(SliceVersions, EachTokenLagsByTheVersionOfItsSlice) {
  const auto spans = version_spans(in_slices(3), "actor_gen", StepId{6}, 9);
  EXPECT_EQ(lag_of_tokens(spans, StepId{6}, 0), 0);
  EXPECT_EQ(lag_of_tokens(spans, StepId{6}, 2), 4);
  EXPECT_EQ(lag_of_tokens(spans, StepId{6}, 4), 7);
  EXPECT_EQ(lag_of_tokens(spans, StepId{6}, 9), 9);
  const auto first = version_spans(in_slices(3), "actor_gen", StepId{1}, 9);
  EXPECT_EQ(lag_of_tokens(first, StepId{1}, 9), 6) << "nothing before 0";
}

TEST(SliceVersions, PeopleReadWhichVersionsAStepUses) {
  EXPECT_EQ(slices_text(in_slices(1), 8), "");
  EXPECT_EQ(slices_text(in_slices(2), 8),
            "actor_gen in 2 slices of at most 4 tokens, which step n generates "
            "with versions n-1, n (0 at least)\n");
  EXPECT_THAT(slices_text(in_slices(2, 1), 0),
              HasSubstr("2 slices, which step n generates with versions n-2, "
                        "n-1"));
}

} // namespace
} // namespace troupe::plans
