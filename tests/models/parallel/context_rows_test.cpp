#include "models/parallel/context_rows.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <set>
#include <tuple>

using ::testing::ElementsAre;

namespace troupe::models {
namespace {

// Two ranks: sequence 0 of 8 tokens is cut, 1 and 2 are whole on a rank each.
const std::vector<std::uint64_t> two_rank_lengths{8, 3, 2};

std::vector<std::vector<plans::TokenRun>> two_rank_cut() {
  return plans::cut_context(two_rank_lengths, 2, /*tile_rows=*/2);
}

std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>
piece_numbers(const AttentionPiece& piece) {
  return {piece.first_query, piece.queries, piece.first_key, piece.position};
}

TEST(ContextRows, PiecesAreTheRunsWithTheKeysOfTheirSequences) {
  const ContextRows first = context_rows(two_rank_cut(), 0);
  EXPECT_THAT(first.positions_T, ElementsAre(0, 1, 6, 7, 0, 1, 2));
  ASSERT_EQ(first.pieces.size(), 3u);
  EXPECT_EQ(piece_numbers(first.pieces[0]), std::tuple(0, 2, 0, 0));
  EXPECT_EQ(piece_numbers(first.pieces[1]), std::tuple(2, 2, 0, 6));
  EXPECT_EQ(piece_numbers(first.pieces[2]), std::tuple(4, 3, 8, 0));
  const ContextRows second = context_rows(two_rank_cut(), 1);
  EXPECT_THAT(second.positions_T, ElementsAre(2, 3, 4, 5, 0, 1));
  ASSERT_EQ(second.pieces.size(), 2u);
  EXPECT_EQ(piece_numbers(second.pieces[0]), std::tuple(0, 4, 0, 2));
  EXPECT_EQ(piece_numbers(second.pieces[1]), std::tuple(4, 2, 8, 0));
}

TEST(ContextRows, KeysAreFoundInTheBlocksOfAllRanks) {
  const ContextRows first = context_rows(two_rank_cut(), 0);
  EXPECT_EQ(first.block, 7) << "rows of the rank with the most";
  EXPECT_THAT(first.sources_K, ElementsAre(0, 1, 7, 8, 9, 10, 2, 3, 4, 5, 6));
  const ContextRows second = context_rows(two_rank_cut(), 1);
  EXPECT_EQ(second.block, 7);
  EXPECT_THAT(second.sources_K, ElementsAre(0, 1, 7, 8, 9, 10, 2, 3, 11, 12));
}

TEST(ContextRows, OfARankWithoutTokensAreNone) {
  const std::vector<std::uint64_t> one{3};
  const ContextRows rows = context_rows(plans::cut_context(one, 2, 2), 1);
  EXPECT_EQ(rows.queries(), 0);
  EXPECT_EQ(rows.keys(), 0);
  EXPECT_EQ(rows.block, 3) << "it still takes part in the gather";
}

TEST(ContextRows, AreThePiecesThatAttentionTakes) {
  const std::vector<std::uint64_t> many{900, 10, 0, 333, 70, 5000};
  for (std::uint32_t ranks = 1; ranks < 9; ++ranks) {
    const auto runs = plans::cut_context(many, ranks, 16);
    for (std::uint32_t r = 0; r < ranks; ++r) {
      const ContextRows rows = context_rows(runs, r);
      PieceShape{{2, 1, 4, {}}, rows.pieces, rows.queries(), rows.keys()}
        .check();
      const std::set<std::int64_t> sources(rows.sources_K.begin(),
                                           rows.sources_K.end());
      EXPECT_EQ(std::ssize(sources), rows.keys()) << "each key once";
    }
  }
}

} // namespace
} // namespace troupe::models
