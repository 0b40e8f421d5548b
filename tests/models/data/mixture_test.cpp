// The order of a mixture: shares, epochs of each file, and steps that do not
// depend on earlier ones.
#include "config/settings/settings.hpp"
#include "models/data/data_order.hpp"
#include "models/data/mixture.hpp"
#include "models/data/source_rows.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace troupe::models {
namespace {

using ::testing::ElementsAre;

std::vector<double> weights_of(std::size_t kind) {
  const std::vector<std::vector<double>> kinds{
    {1, 1}, {0.7, 0.2, 0.1}, {1, 1000}, {1e-3, 5, 2, 2, 1e-3}, {3}};
  return kinds.at(kind);
}

Mixture mixture_of(const std::vector<double>& weights, bool shuffle = true) {
  std::vector<MixedFile> files;
  for (std::size_t i = 0; i < weights.size(); ++i)
    files.push_back({static_cast<std::uint32_t>(5 + 3 * i), weights[i]});
  return {files, 7, shuffle};
}

class MixtureShares : public ::testing::TestWithParam<std::size_t> {};

TEST_P(MixtureShares, OfAnyPositionsAreWithinHalfARowPerFile) {
  const auto weights = weights_of(GetParam());
  const auto mixture = mixture_of(weights);
  const double all = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<std::uint64_t> given(weights.size());
  for (std::uint64_t position = 0; position < 5000; ++position) {
    const auto turn = mixture.turn_at(position);
    ASSERT_EQ(turn.before, given[turn.file]) << "counts its own rows";
    ++given[turn.file];
    for (std::size_t i = 0; i < weights.size(); ++i)
      ASSERT_NEAR(given[i], weights[i] / all * (position + 1.0),
                  0.5 * weights.size() + 1e-4)
        << "file " << i << " at " << position;
  }
}

INSTANTIATE_TEST_SUITE_P(Weights, MixtureShares,
                         ::testing::Range<std::size_t>(0, 5));

TEST(Mixture, IsTheSameOnEveryMachine) {
  // Fixed numbers: a change here changes every resumed run.
  auto mixture = mixture_of({2, 1}, /*shuffle=*/false);
  std::vector<std::uint32_t> rows;
  for (std::uint64_t position = 0; position < 9; ++position)
    rows.push_back(mixture.row_at(position));
  EXPECT_THAT(rows, ElementsAre(0, 5, 1, 2, 6, 3, 4, 7, 0));
}

TEST(Mixture, EachFileGivesAllItsRowsBeforeOneComesAgain) {
  auto mixture = mixture_of({3, 1});
  std::vector<std::uint32_t> first_file;
  for (std::uint64_t position = 0; position < 400; ++position)
    if (mixture.turn_at(position).file == 0)
      first_file.push_back(mixture.row_at(position));
  ASSERT_EQ(first_file.size(), 300U);
  bool differ = false;
  for (auto epoch = first_file.begin(); epoch != first_file.end(); epoch += 5) {
    std::vector<std::uint32_t> rows(epoch, epoch + 5);
    differ = differ
             || rows != std::vector(first_file.begin(), first_file.begin() + 5);
    std::ranges::sort(rows);
    EXPECT_THAT(rows, ElementsAre(0, 1, 2, 3, 4));
  }
  EXPECT_TRUE(differ) << "each epoch has an order of its own";
}

Settings mixed_settings() {
  Settings settings;
  settings.workflow = "ppo";
  settings.run.seed = 3;
  settings.data.batch_size = 10;
  settings.data.sources = {{"a.jsonl", 0.7}, {"b.jsonl", 0.3}};
  return settings;
}

TEST(Mixture, AStepDependsOnSeedAndStepAlone_I8) {
  auto settings = mixed_settings();
  auto walked = data_order(settings, {40, 1000});
  for (std::uint64_t step = 0; step < 30; ++step)
    walked.batch(step);
  const auto later = walked.batch(30);
  EXPECT_EQ(later.size(), 10U);
  EXPECT_EQ(data_order(settings, {40, 1000}).batch(30), later);
  EXPECT_EQ(walked.epoch_of(103), 0U);
  EXPECT_EQ(walked.epoch_of(104), 1U) << "of as many rows as all files have";
  settings.run.seed = 4;
  EXPECT_NE(data_order(settings, {40, 1000}).batch(30), later);
}

TEST(SourceRows, CountTheRowsThatEachFileGivesToAStep) {
  const SourceRows rows(mixed_settings(), {40, 1000});
  EXPECT_FALSE(rows.is_one());
  EXPECT_THAT(rows.names(), ElementsAre("a", "b"));
  EXPECT_THAT(rows.of_step(0), ElementsAre(7, 3));
  EXPECT_THAT(rows.of_step(12), ElementsAre(7, 3));
}

TEST(SourceRows, OfFilesWithoutWeightsAreAsInOneFile) {
  auto settings = mixed_settings();
  settings.data.sources = {{"a.jsonl", 0}, {"b.jsonl", 0}};
  EXPECT_EQ(data_order(settings, {4, 16}).batch(1),
            data_order(settings, 20).batch(1));
  const SourceRows rows(settings, {4, 16});
  std::vector<std::uint32_t> epoch(2);
  for (std::uint64_t step = 0; step < 2; ++step) {
    const auto counts = rows.of_step(step);
    for (std::size_t i = 0; i < 2; ++i)
      epoch[i] += counts[i];
  }
  EXPECT_THAT(epoch, ElementsAre(4, 16)) << "each row comes once an epoch";
}

} // namespace
} // namespace troupe::models
