#include "config/settings/settings.hpp"
#include "models/rl/keep_groups.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <vector>

namespace troupe::models {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Groups of two; a step wants two groups.
Settings settings_of_two() {
  Settings settings;
  settings.rollout.n = 2;
  settings.data.batch_size = 2;
  return settings;
}

net::Rows scored(std::uint32_t first, const std::vector<float>& scores) {
  std::vector<SampleId> samples;
  for (std::uint32_t i = 0; i < scores.size(); ++i)
    samples.emplace_back(first + i);
  net::Rows rows(samples, {});
  rows.add(net::make_column("scores", DType::f32,
                            std::vector<std::uint32_t>(scores.size(), 1),
                            scores.data()));
  return rows;
}

FunctionResult keep(std::uint32_t first, const std::vector<float>& scores,
                    const CarriedValues& carried = {}) {
  const Settings settings = settings_of_two();
  return run_function("keep_groups", scored(first, scores),
                      {settings, StepId{3}, carried});
}

std::vector<std::uint32_t> ids_of(const FunctionResult& result) {
  std::vector<std::uint32_t> ids;
  for (const SampleId sample : result.rows.samples)
    ids.push_back(sample.value);
  return ids;
}

TEST(KeepGroups, KeepsThoseWithDifferentRewards) {
  const auto found = keep(0, {1, 1, 0, 1});
  EXPECT_THAT(ids_of(found), ElementsAre(2, 3));
  EXPECT_EQ(found.carried.at("kept_groups"), 1);
  EXPECT_EQ(found.sums.value("rollout/rounds"), 1);
  EXPECT_EQ(found.sums.value("rollout/groups_alike"), 1);
  EXPECT_EQ(found.sums.value("rollout/groups_beyond"), 0);
}

TEST(KeepGroups, ALaterRoundCountsWhatIsKeptAndStopsAtTheBatch) {
  const auto found = keep(4, {0, 1, 1, 0}, {{"kept_groups", 1}});
  EXPECT_THAT(ids_of(found), ElementsAre(4, 5));
  EXPECT_EQ(found.carried.at("kept_groups"), 2);
  EXPECT_EQ(found.sums.value("rollout/groups_beyond"), 1);
}

TEST(KeepGroups, AStepBeginsWithNothingKept) {
  const auto found = keep(0, {0, 1, 1, 0}, {{"kept_groups", 2}});
  EXPECT_THAT(ids_of(found), ElementsAre(0, 1, 2, 3));
}

TEST(KeepGroups, NearlyEqualAndMissingRewardsAreNoDifference) {
  EXPECT_THAT(ids_of(keep(0, {0.5F, 0.5F + 1e-7F, NAN, 1})), IsEmpty());
  EXPECT_THAT(ids_of(keep(0, {NAN, NAN, 0, 1e-3F})), ElementsAre(2, 3));
}

} // namespace
} // namespace troupe::models
