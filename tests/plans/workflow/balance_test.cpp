#include "config/base/error.hpp"
#include "plans/workflow/balance.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>
#include <random>

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::SizeIs;

namespace troupe::plans {
namespace {

using Lists = std::vector<std::vector<std::uint32_t>>;

std::vector<std::uint64_t> random_costs(std::mt19937_64& random,
                                        std::size_t count) {
  std::vector<std::uint64_t> costs(count);
  for (auto& cost : costs)
    cost = 1 + random() % 4096;
  return costs;
}

std::uint64_t cost_of(const std::vector<std::uint32_t>& list,
                      const std::vector<std::uint64_t>& costs) {
  std::uint64_t sum = 0;
  for (const auto i : list)
    sum += costs[i];
  return sum;
}

/// Checks that every item is there exactly once.
void expect_partition(const Lists& lists, std::size_t count) {
  std::vector<std::uint32_t> all;
  for (const auto& list : lists) {
    EXPECT_TRUE(std::ranges::is_sorted(list));
    all.insert(all.end(), list.begin(), list.end());
  }
  std::ranges::sort(all);
  std::vector<std::uint32_t> expected(count);
  std::iota(expected.begin(), expected.end(), 0u);
  EXPECT_EQ(all, expected);
}

TEST(Balance, DifferencingSplitsTheTextbookCase) {
  // {4,5,6,7,8}: the method gives 16 / 14.
  const std::vector<std::uint64_t> costs = {4, 5, 6, 7, 8};
  const auto lists = balance(costs, 2, false);
  EXPECT_EQ(cost_of(lists[0], costs), 16u);
  EXPECT_EQ(cost_of(lists[1], costs), 14u);
}

TEST(Balance, EveryItemIsInOneList) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 200; ++round) {
    const auto costs = random_costs(random, random() % 70);
    const auto parts = std::uint32_t(1 + random() % 9);
    for (const bool equal_count : {false, true}) {
      const auto lists = balance(costs, parts, equal_count);
      EXPECT_THAT(lists, SizeIs(parts));
      expect_partition(lists, costs.size());
      EXPECT_EQ(lists, balance(costs, parts, equal_count)) << "I8";
    }
  }
}

TEST(Balance, EqualCountsDifferByAtMostOne) {
  std::mt19937_64 random(4);
  for (int round = 0; round < 200; ++round) {
    const auto costs = random_costs(random, 1 + random() % 70);
    const auto lists = balance(costs, std::uint32_t(1 + random() % 9), true);
    const auto [least, most] = std::ranges::minmax(
      lists, {}, [](const auto& list) { return list.size(); });
    EXPECT_LE(most.size() - least.size(), 1u);
  }
}

TEST(Balance, SpreadIsFarBelowThatOfContiguousParts) {
  std::mt19937_64 random(5);
  const auto costs = random_costs(random, 512);
  const auto lists = balance(costs, 8, false);
  const auto spread
    = cost_of(lists.front(), costs) - cost_of(lists.back(), costs);
  EXPECT_LT(spread, 16u) << "of about a million tokens";
}

TEST(Balance, EqualCostsAndNoItemsAreAccepted) {
  EXPECT_THAT(balance({}, 3, false),
              ElementsAre(SizeIs(0), SizeIs(0), SizeIs(0)));
  const std::vector<std::uint64_t> same(6, 10);
  EXPECT_THAT(balance(same, 3, false), Each(SizeIs(2)));
  const std::vector<std::uint64_t> nothing(6, 0);
  EXPECT_THAT(balance(nothing, 3, true), Each(SizeIs(2)));
}

TEST(MiniBatches, RangesAreContiguousAndTheFirstLarger) {
  EXPECT_THAT(mini_batches(10, 4, 1), ElementsAre(SampleRange{SampleId{0}, 3},
                                                  SampleRange{SampleId{3}, 3},
                                                  SampleRange{SampleId{6}, 2},
                                                  SampleRange{SampleId{8}, 2}));
}

TEST(MiniBatches, GroupsStayWhole) {
  EXPECT_THAT(mini_batches(12, 2, 4), ElementsAre(SampleRange{SampleId{0}, 8},
                                                  SampleRange{SampleId{8}, 4}));
  EXPECT_THROW(mini_batches(10, 2, 4), InvariantError);
}

TEST(MicroBatches, FitTheBudget) {
  std::mt19937_64 random(6);
  for (int round = 0; round < 100; ++round) {
    const auto tokens = random_costs(random, 1 + random() % 60);
    const auto lists = micro_batches(tokens, 8192);
    expect_partition(lists, tokens.size());
    for (const auto& list : lists)
      EXPECT_LE(cost_of(list, tokens), 8192u);
    const auto total
      = std::accumulate(tokens.begin(), tokens.end(), std::uint64_t{0});
    EXPECT_LE(lists.size(), 2 * total / 8192 + 2) << "few";
  }
}

TEST(MicroBatches, ALongSampleIsAlone) {
  const std::vector<std::uint64_t> tokens = {100, 1, 1, 1};
  const auto lists = micro_batches(tokens, 10);
  EXPECT_THAT(lists, ElementsAre(ElementsAre(0), ElementsAre(1, 2, 3)));
}

TEST(MicroBatches, TheirNumberMayBeGiven) {
  const std::vector<std::uint64_t> tokens = {5, 5, 5, 5};
  EXPECT_THAT(micro_batches(tokens, 1000, 2), SizeIs(2));
  EXPECT_THAT(micro_batches(tokens, 1000, 9), SizeIs(4));
  EXPECT_THAT(micro_batches({}, 1000, 9), SizeIs(0));
}

} // namespace
} // namespace troupe::plans
