#include "plans/workflow/call_split.hpp"

#include "tests/support/plans/support.hpp"
#include <gmock/gmock.h>

#include <numeric>

namespace troupe::plans {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

std::vector<SampleId> all_samples(const std::vector<Share>& shares) {
  std::vector<SampleId> samples;
  for (const auto& share : shares)
    for (const auto& batch : share)
      samples.insert(samples.end(), batch.begin(), batch.end());
  std::ranges::sort(samples);
  return samples;
}

TEST(CallSplit, EverySampleGoesToExactlyOneCoordinate_I5) {
  const auto workflow = make_ppo();
  std::vector<std::uint32_t> tokens(37);
  std::iota(tokens.begin(), tokens.end(), 5U);
  for (const char* call : {"actor_gen", "ref_inf", "actor_train"})
    for (const std::uint32_t dp : {1U, 2U, 3U, 5U}) {
      const auto samples = all_samples(
        split_call(workflow.call(call), dp, tokens, {SampleId{0}, 37}, 1, 4));
      ASSERT_THAT(samples, SizeIs(tokens.size())) << call << " d" << dp;
      for (std::uint32_t i = 0; i < samples.size(); ++i)
        EXPECT_EQ(samples[i], SampleId{i});
    }
}

TEST(CallSplit, TrainingHasEqualMiniBatchesOnAllRanks) {
  const auto workflow = make_ppo();
  const std::vector<std::uint32_t> tokens(16, 10);
  const auto shares = split_call(workflow.call("actor_train"), 2, tokens,
                                 {SampleId{0}, 16}, 1, 4);
  ASSERT_THAT(shares, SizeIs(2));
  for (const auto& share : shares) {
    ASSERT_THAT(share, SizeIs(4));
    for (const auto& batch : share)
      EXPECT_THAT(batch, SizeIs(2));
  }
}

TEST(CallSplit, TrainingBalancesTheTokensOfEachMiniBatch) {
  const auto workflow = make_ppo();
  const std::vector<std::uint32_t> tokens{60, 1, 2, 57, 8, 30, 31, 9};
  const auto shares = split_call(workflow.call("actor_train"), 2, tokens,
                                 {SampleId{0}, 8}, 1, 2);
  ASSERT_THAT(shares, SizeIs(2));
  for (const std::size_t batch : {0U, 1U}) {
    std::vector<std::uint32_t> sums;
    for (const auto& share : shares) {
      sums.push_back(0);
      for (const auto sample : share.at(batch))
        sums.back() += tokens[sample.value];
    }
    EXPECT_LE(std::max(sums[0], sums[1]) - std::min(sums[0], sums[1]), 2U)
      << "mini-batch " << batch;
  }
}

TEST(CallSplit, MiniBatchesAreContiguousRangesOfIds) {
  const auto workflow = make_ppo();
  const std::vector<std::uint32_t> tokens(4, 10);
  const auto shares = split_call(workflow.call("critic_train"), 1, tokens,
                                 {SampleId{0}, 4}, 1, 2);
  ASSERT_THAT(shares, SizeIs(1));
  EXPECT_THAT(shares[0], ElementsAre(ElementsAre(SampleId{0}, SampleId{1}),
                                     ElementsAre(SampleId{2}, SampleId{3})));
}

TEST(CallSplit, GenerationKeepsThePromptsSamplesTogether) {
  const auto workflow = make_ppo();
  const std::vector<std::uint32_t> tokens(12, 7);
  for (const auto& share : split_call(workflow.call("actor_gen"), 2, tokens,
                                      {SampleId{0}, 12}, 3, 1))
    for (std::size_t i = 0; i < share[0].size(); ++i)
      EXPECT_EQ(share[0][i].value / 3, share[0][i / 3 * 3].value / 3);
}

TEST(CallSplit, InferenceBalancesTokens) {
  const auto workflow = make_ppo();
  const std::vector<std::uint32_t> tokens{100, 1, 1, 98};
  const auto shares
    = split_call(workflow.call("ref_inf"), 2, tokens, {SampleId{0}, 4}, 1, 1);
  for (const auto& share : shares) {
    std::uint32_t sum = 0;
    for (const auto sample : share[0])
      sum += tokens[sample.value];
    EXPECT_EQ(sum, 100U);
  }
}

void expect_whole_groups(std::uint32_t samples, std::uint32_t group,
                         std::uint32_t chunks) {
  std::uint32_t next = 0;
  for (std::uint32_t i = 0; i < chunks; ++i) {
    const auto range = chunk_range(samples, group, i, chunks);
    EXPECT_EQ(range.first, SampleId{next});
    EXPECT_EQ(range.count % group, 0U);
    EXPECT_GT(range.count, 0U);
    next += range.count;
  }
  EXPECT_EQ(next, samples);
}

TEST(CallSplit, ChunksAreContiguousGroupsAndHoldEverySampleOnce) {
  for (const std::uint32_t samples : {12U, 21U, 39U})
    for (const std::uint32_t chunks : {1U, 2U, 3U, 4U}) {
      expect_whole_groups(samples, 1, chunks);
      expect_whole_groups(samples, 3, chunks);
    }
}

// The step graph makes chunk i of k wait for those of another count that cover
// the same fraction of the step.
void expect_found(std::uint32_t samples, std::uint32_t from, std::uint32_t to) {
  const auto end_of
    = [](SampleRange range) { return range.first.value + range.count; };
  for (std::uint32_t i = 0; i < to; ++i) {
    const auto first = i * from / to;
    const auto last = ((i + 1) * from + to - 1) / to - 1;
    const auto range = chunk_range(samples, 1, i, to);
    EXPECT_LE(chunk_range(samples, 1, first, from).first, range.first);
    EXPECT_GE(end_of(chunk_range(samples, 1, last, from)), end_of(range));
  }
}

TEST(CallSplit, ChunksDependOnTheChunksOfTheirSamples) {
  for (const std::uint32_t samples : {7U, 12U, 30U})
    for (std::uint32_t from = 1; from < 7; ++from)
      for (std::uint32_t to = 1; to < 7; ++to)
        expect_found(samples, from, to);
}

TEST(CallSplit, AChunkIsBalancedByItself) {
  const auto workflow = make_ppo();
  const std::vector<std::uint32_t> tokens{9, 9, 100, 1, 1, 98};
  const auto shares
    = split_call(workflow.call("ref_inf"), 2, tokens, {SampleId{2}, 4}, 1, 1);
  EXPECT_THAT(all_samples(shares),
              ElementsAre(SampleId{2}, SampleId{3}, SampleId{4}, SampleId{5}));
  for (const auto& share : shares) {
    std::uint32_t sum = 0;
    for (const auto sample : share[0])
      sum += tokens[sample.value];
    EXPECT_EQ(sum, 100u);
  }
}

} // namespace
} // namespace troupe::plans
