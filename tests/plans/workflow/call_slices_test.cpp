#include "plans/workflow/call_slices.hpp"

#include "tests/support/plans/support.hpp"
#include <gmock/gmock.h>

namespace troupe::plans {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::Not;
using ::testing::StartsWith;

TEST(CallSlices, LimitsGrowToAllNewTokens) {
  EXPECT_EQ(slice_limit(10, {0, 4}), 3);
  EXPECT_EQ(slice_limit(10, {1, 4}), 5);
  EXPECT_EQ(slice_limit(10, {2, 4}), 8);
  EXPECT_EQ(slice_limit(10, {3, 4}), 10);
  EXPECT_EQ(slice_limit(10, {}), 10);
}

TEST(CallSlices, EachSliceIsOneStepAheadOfTheNext) {
  EXPECT_EQ(slice_lag(1, {0, 3}), 3U);
  EXPECT_EQ(slice_lag(1, {2, 3}), 1U);
  EXPECT_EQ(slice_lag(1, {}), 1U);
}

TEST(CallSlices, AWholeCallStaysAsItIs) {
  const auto ppo = make_ppo();
  EXPECT_EQ(slice_of(ppo.call("actor_gen"), {}), ppo.call("actor_gen"));
}

TEST(CallSlices, ASliceReadsWhatTheOneBeforeWroteUnderTheSameNames) {
  const auto ppo = make_ppo();
  const auto& call = ppo.call("actor_gen");
  const auto first = slice_of(call, {0, 3});
  const auto second = slice_of(call, {1, 3});
  const auto last = slice_of(call, {2, 3});
  EXPECT_EQ(first.reads, call.reads);
  EXPECT_THAT(first.writes, Each(StartsWith("slice0/")));
  EXPECT_THAT(second.reads, Contains("slice0/sequence_ids"));
  EXPECT_EQ(second.argument("slice0/sequence_ids"), "sequence_ids");
  EXPECT_EQ(second.argument("slice1/sequence_ids"), "sequence_ids");
  EXPECT_THAT(second.writes, Contains("slice1/logprobs"));
  EXPECT_THAT(last.reads, Contains("slice1/truncated"));
  EXPECT_EQ(last.writes, call.writes);
  EXPECT_THAT(last.reads, Not(Contains("slice0/sequence_ids")));
}

} // namespace
} // namespace troupe::plans
