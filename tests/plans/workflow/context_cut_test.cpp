#include "config/base/error.hpp"
#include "plans/workflow/context_cut.hpp"
#include "plans/workflow/context_share.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <random>

using ::testing::ElementsAre;

namespace troupe::plans {
namespace {

using Cut = std::vector<std::vector<TokenRun>>;

constexpr std::uint64_t tile = 96;

std::vector<std::uint64_t> random_lengths(std::mt19937_64& random) {
  std::vector<std::uint64_t> lengths(random() % 9);
  for (auto& length : lengths)
    length = random() % (random() % 2 == 0 ? 200 : 9000);
  return lengths;
}

/// Returns the pairs of a token of the run and one that it sees.
std::uint64_t pairs_of(const TokenRun& run) {
  return run.count * run.first + run.count * (run.count + 1) / 2;
}

std::uint64_t tokens_of(const TokenRun& run) {
  return run.count;
}

/// Returns how many more `of_run` one rank has than another, at most.
std::uint64_t spread(const Cut& cut, std::uint64_t (*of_run)(const TokenRun&)) {
  std::vector<std::uint64_t> sums;
  for (const auto& runs : cut) {
    sums.push_back(0);
    for (const TokenRun& run : runs)
      sums.back() += of_run(run);
  }
  const auto [least, most] = std::ranges::minmax(sums);
  return most - least;
}

TEST(ContextCut, RanksGetAnEarlyRunAndALateOne) {
  const std::vector<std::uint64_t> lengths{16, 5};
  EXPECT_THAT(cut_context(lengths, 4, 2), // all have 34 pairs of the first
              ElementsAre(ElementsAre(TokenRun{0, 0, 2}, TokenRun{0, 14, 2},
                                      TokenRun{1, 0, 5}),
                          ElementsAre(TokenRun{0, 2, 2}, TokenRun{0, 12, 2}),
                          ElementsAre(TokenRun{0, 4, 2}, TokenRun{0, 10, 2}),
                          ElementsAre(TokenRun{0, 6, 4})));
}

/// Expects each token in one run, and a rank's runs in order.
void expect_all_tokens_once(const Cut& cut,
                            const std::vector<std::uint64_t>& lengths) {
  std::vector<std::vector<int>> seen;
  for (const auto length : lengths)
    seen.emplace_back(length, 0);
  for (const auto& runs : cut) {
    EXPECT_TRUE(std::ranges::is_sorted(runs, {}, [](const TokenRun& run) {
      return std::pair{run.sequence, run.first};
    }));
    for (const TokenRun& run : runs)
      for (std::uint64_t t = run.first; t < run.first + run.count; ++t)
        ++seen[run.sequence].at(t);
  }
  for (const auto& tokens : seen)
    EXPECT_TRUE(std::ranges::all_of(tokens, [](int n) { return n == 1; }));
}

TEST(ContextCut, EveryTokenIsInOneRun_I8) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 300; ++round) {
    const auto lengths = random_lengths(random);
    const auto ranks = std::uint32_t(1 + random() % 8);
    const Cut cut = cut_context(lengths, ranks, tile);
    ASSERT_EQ(cut.size(), ranks);
    expect_all_tokens_once(cut, lengths);
    EXPECT_EQ(cut, cut_context(lengths, ranks, tile)) << "the same again";
  }
}

TEST(ContextCut, PairsOfALongSequenceDifferByLessThanATilesRows) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 300; ++round) {
    const auto ranks = std::uint32_t(2 + random() % 15);
    const std::vector<std::uint64_t> one{2 * ranks * tile + random() % 9000};
    EXPECT_LT(spread(cut_context(one, ranks, tile), pairs_of), 2 * one[0])
      << "two rows, and a tile has 96";
  }
}

TEST(ContextCut, ShortSequencesStayWholeWhereAreFewestTokens) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 100; ++round) {
    const auto ranks = std::uint32_t(2 + random() % 5);
    std::vector<std::uint64_t> lengths{5000, 2 * ranks * tile - 1};
    while (lengths.size() < 40)
      lengths.push_back(1 + random() % 300);
    const Cut cut = cut_context(lengths, ranks, tile);
    for (const auto& runs : cut)
      for (const TokenRun& run : runs)
        EXPECT_TRUE(run.sequence == 0 || run.count == lengths[run.sequence]);
    // the longest ones came first: the shortest are what differs, if anything
    EXPECT_LE(spread(cut, tokens_of), lengths[1]);
  }
}

TEST(ContextCut, EmptySequencesAreNowhereAndOneRankHasAll) {
  const std::vector<std::uint64_t> lengths{0, 9000, 3};
  EXPECT_THAT(
    cut_context(lengths, 1, tile),
    ElementsAre(ElementsAre(TokenRun{1, 0, 9000}, TokenRun{2, 0, 3})));
  EXPECT_THROW(cut_context(lengths, 0, tile), InvariantError);
}

/// Returns how many of a sequence's last `count` tokens each rank has.
std::vector<std::uint64_t> last_of(const Cut& cut, std::uint64_t length,
                                   std::uint64_t count) {
  std::vector<std::uint64_t> own;
  for (const auto& runs : cut) {
    own.push_back(0);
    for (const TokenRun& run : runs) {
      const auto first = std::max(run.first, length - count);
      const auto end = run.first + run.count;
      own.back() += end > first ? end - first : 0;
    }
  }
  return own;
}

TEST(ContextShare, IsTheMostThatARankHasOfACutSequence) {
  for (const std::uint32_t ranks : {1U, 2U, 3U, 4U, 8U})
    for (const std::uint64_t length : {1536U, 1537U, 2000U, 4099U}) {
      const std::vector<std::uint64_t> lengths{length};
      const auto cut = cut_context(lengths, ranks, tile);
      const ContextShare share(length, ranks);
      const auto own = std::ranges::max(last_of(cut, length, length));
      EXPECT_GE(share.tokens(), own) << ranks << " of " << length;
      EXPECT_LE(share.tokens(), own + 2) << "up to the rounding of runs";
      for (std::uint64_t count = 0; count <= length; count += 97) {
        const auto most = std::ranges::max(last_of(cut, length, count));
        EXPECT_GE(share.last_tokens(count), most) << ranks << " of " << length;
        EXPECT_LE(share.last_tokens(count), most + 2);
      }
    }
}

TEST(ContextShare, ShortSequencesKeepFewRanksBusy) {
  EXPECT_EQ(most_context_ranks(0), 1U);
  EXPECT_EQ(most_context_ranks(8 * 96 - 1), 1U);
  EXPECT_EQ(most_context_ranks(8 * 96), 2U);
  EXPECT_EQ(most_context_ranks(131072), 341U);
}

} // namespace
} // namespace troupe::plans
