#include "plans/call_split.hpp"

#include "support.hpp"
#include <gmock/gmock.h>

#include <numeric>

namespace troupe::plans {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

std::vector<SampleId> all_samples(const std::vector<Share>& shares) {
  std::vector<SampleId> samples;
  for (const auto& share : shares)
    for (const auto& batch : share)
      samples.insert(samples.end(), batch.begin(), batch.end());
  std::ranges::sort(samples);
  return samples;
}

TEST(CallSplit, I5EverySampleGoesToExactlyOneCoordinate) {
  const auto workflow = make_ppo();
  std::vector<std::uint32_t> tokens(37);
  std::iota(tokens.begin(), tokens.end(), 5U);
  for (const char* call : {"actor_gen", "ref_inf", "actor_train"})
    for (const std::uint32_t dp : {1U, 2U, 3U, 5U}) {
      const auto samples
        = all_samples(split_call(workflow.call(call), dp, tokens, 1, 4));
      ASSERT_THAT(samples, SizeIs(tokens.size())) << call << " d" << dp;
      for (std::uint32_t i = 0; i < samples.size(); ++i)
        EXPECT_EQ(samples[i], SampleId{i});
    }
}

TEST(CallSplit, TrainingHasEqualMiniBatchesOnAllRanks) {
  const auto workflow = make_ppo();
  const std::vector<std::uint32_t> tokens(16, 10);
  const auto shares = split_call(workflow.call("actor_train"), 2, tokens, 1, 4);
  ASSERT_THAT(shares, SizeIs(2));
  for (const auto& share : shares) {
    ASSERT_THAT(share, SizeIs(4));
    for (const auto& batch : share)
      EXPECT_THAT(batch, SizeIs(2));
  }
}

TEST(CallSplit, MiniBatchesAreContiguousRangesOfIds) {
  const auto workflow = make_ppo();
  const std::vector<std::uint32_t> tokens(4, 10);
  const auto shares
    = split_call(workflow.call("critic_train"), 1, tokens, 1, 2);
  ASSERT_THAT(shares, SizeIs(1));
  EXPECT_THAT(shares[0], ElementsAre(ElementsAre(SampleId{0}, SampleId{1}),
                                     ElementsAre(SampleId{2}, SampleId{3})));
}

TEST(CallSplit, GenerationKeepsThePromptsSamplesTogether) {
  const auto workflow = make_ppo();
  const std::vector<std::uint32_t> tokens(12, 7);
  for (const auto& share :
       split_call(workflow.call("actor_gen"), 2, tokens, 3, 1))
    for (std::size_t i = 0; i < share[0].size(); ++i)
      EXPECT_EQ(share[0][i].value / 3, share[0][i / 3 * 3].value / 3);
}

TEST(CallSplit, InferenceBalancesTokens) {
  const auto workflow = make_ppo();
  const std::vector<std::uint32_t> tokens{100, 1, 1, 98};
  const auto shares = split_call(workflow.call("ref_inf"), 2, tokens, 1, 1);
  for (const auto& share : shares) {
    std::uint32_t sum = 0;
    for (const auto sample : share[0])
      sum += tokens[sample.value];
    EXPECT_EQ(sum, 100U);
  }
}

} // namespace
} // namespace troupe::plans
