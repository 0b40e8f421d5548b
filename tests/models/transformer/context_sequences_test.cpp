// The tokens that each cp rank packs of a micro-batch's sequences.
#include "models/transformer/context_sequences.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>

namespace troupe::models {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using TokenIds = std::vector<std::int32_t>;

// Ids that count on, so that each token is its own.
std::vector<TokenIds> counted_ids(const std::vector<std::size_t>& lengths) {
  std::vector<TokenIds> sequences;
  std::int32_t next = 0;
  for (const std::size_t length : lengths) {
    auto& own = sequences.emplace_back(length);
    std::iota(own.begin(), own.end(), next);
    next += static_cast<std::int32_t>(length);
  }
  return sequences;
}

std::vector<std::span<const std::int32_t>>
context_spans(const std::vector<TokenIds>& sequences) {
  return {sequences.begin(), sequences.end()};
}

// Counts the tokens that a rank packs; checks what it says about each.
void count_packed(const PackedSequences& own, std::vector<int>& packed_by_L) {
  for (std::size_t i = 0; i < own.packed_L.size(); ++i) {
    if (own.packed_L[i] < 0)
      continue;
    ++packed_by_L[i];
    const auto entry = static_cast<std::int64_t>(i);
    const auto token = static_cast<std::size_t>(own.packed_L[i]);
    const auto after = std::ranges::upper_bound(own.cu_seqlens, entry);
    EXPECT_EQ(own.ids_L[i], entry);
    EXPECT_EQ(own.tokens.ids_T[token], entry);
    EXPECT_EQ(own.tokens.positions_T[token], entry - *std::prev(after));
  }
}

TEST(PackContext, EveryTokenIsPackedByOneRank) {
  const std::vector<TokenIds> sequences = counted_ids({900, 10, 0, 333, 70});
  for (std::uint32_t ranks = 1; ranks < 5; ++ranks) {
    std::vector<int> packed_by_L(1313, 0);
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      const auto own = pack_context(context_spans(sequences), ranks, rank);
      EXPECT_THAT(own.cu_seqlens, ElementsAre(0, 900, 910, 910, 1243, 1313));
      count_packed(own, packed_by_L);
    }
    EXPECT_THAT(packed_by_L, Each(1)) << ranks;
  }
}

TEST(PackContext, ShortSequencesAreWholeAndARankMayHaveNone) {
  const std::vector<TokenIds> sequences = counted_ids({30});
  const auto first = pack_context(context_spans(sequences), 2, 0);
  const auto second = pack_context(context_spans(sequences), 2, 1);
  EXPECT_EQ(first.tokens.num_tokens(), 30);
  EXPECT_EQ(second.tokens.num_tokens(), 0);
  EXPECT_THAT(second.tokens.ids_T, IsEmpty());
  EXPECT_THAT(second.packed_L, Each(-1));
  EXPECT_EQ(second.tokens.context->block, 30);
}

TEST(PackOwn, WithoutAGroupPromptsAreShared) {
  const std::vector<TokenIds> sequences{{1, 2, 10}, {1, 2, 20}};
  const std::vector<std::int64_t> prompts{2, 2};
  const auto packed = pack_own(nullptr, context_spans(sequences), prompts);
  EXPECT_THAT(packed.tokens.ids_T, ElementsAre(1, 2, 10, 20));
  EXPECT_THAT(packed.ids_L, ElementsAre(1, 2, 10, 1, 2, 20));
  EXPECT_FALSE(packed.tokens.context.has_value());
}

} // namespace
} // namespace troupe::models
