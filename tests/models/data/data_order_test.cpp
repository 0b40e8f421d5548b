#include "models/data/data_order.hpp"

#include <gmock/gmock.h>

#include <numeric>

namespace troupe::models {
namespace {

using ::testing::ElementsAre;

std::vector<std::uint32_t> sorted_rows(std::vector<std::uint32_t> rows) {
  std::sort(rows.begin(), rows.end());
  return rows;
}

TEST(DataOrder, EveryEpochIsADifferentPermutation) {
  std::vector<std::uint32_t> all(1000);
  std::iota(all.begin(), all.end(), 0U);
  EXPECT_EQ(sorted_rows(epoch_order(1000, 1, 0)), all);
  EXPECT_EQ(epoch_order(1000, 1, 0), epoch_order(1000, 1, 0));
  EXPECT_NE(epoch_order(1000, 1, 0), epoch_order(1000, 1, 1));
  EXPECT_NE(epoch_order(1000, 1, 0), epoch_order(1000, 2, 0));
  EXPECT_NE(epoch_order(1000, 1, 0), epoch_order(1000, 1ULL << 32 | 1, 0));
}

TEST(DataOrder, IsTheSameOnEveryMachine) {
  // Fixed numbers: a change here changes every resumed run.
  EXPECT_THAT(epoch_order(8, 1, 0), ElementsAre(3, 0, 2, 5, 6, 1, 4, 7));
}

TEST(DataOrder, AFiniteWalkEndsWithAShortBatch) {
  DataOrder order(5, 3, 1, /*shuffle=*/false, /*num_epochs=*/1);
  EXPECT_THAT(order.batch(0), ElementsAre(0, 1, 2));
  EXPECT_THAT(order.batch(1), ElementsAre(3, 4));
  EXPECT_TRUE(order.batch(2).empty());
}

TEST(DataOrder, AllRowsComeFirstEquallyOften) {
  std::vector<int> count(10);
  for (std::uint64_t epoch = 0; epoch < 5000; ++epoch)
    ++count[epoch_order(10, 7, epoch)[0]];
  for (const int c : count)
    EXPECT_NEAR(c, 500, 110); // five standard deviations
}

TEST(DataOrder, BatchesCoverEpochsWithoutGapOrLoss) {
  DataOrder order(10, 4, 3, true);
  std::vector<std::uint32_t> walked;
  for (std::uint64_t step = 0; step < 5; ++step)
    for (const std::uint32_t row : order.batch(step))
      walked.push_back(row);
  for (std::uint64_t epoch = 0; epoch < 2; ++epoch) {
    const std::vector<std::uint32_t> part(
      walked.begin() + static_cast<std::ptrdiff_t>(epoch * 10),
      walked.begin() + static_cast<std::ptrdiff_t>(epoch * 10 + 10));
    EXPECT_EQ(part, epoch_order(10, 3, epoch));
  }
  EXPECT_EQ(order.epoch_of(2), 0U);
  EXPECT_EQ(order.epoch_of(3), 1U);
}

TEST(DataOrder, AStepDoesNotDependOnEarlierSteps) {
  DataOrder walked(100, 7, 5, true);
  for (std::uint64_t step = 0; step < 40; ++step)
    walked.batch(step);
  DataOrder resumed(100, 7, 5, true);
  EXPECT_EQ(resumed.batch(33), walked.batch(33));
}

TEST(DataOrder, WithoutShufflingRowsAreInFileOrder) {
  DataOrder order(5, 3, 1, false);
  EXPECT_THAT(order.batch(0), ElementsAre(0, 1, 2));
  EXPECT_THAT(order.batch(1), ElementsAre(3, 4, 0));
}

} // namespace
} // namespace troupe::models
