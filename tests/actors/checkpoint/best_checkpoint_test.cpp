#include "actors/checkpoint/best_checkpoint.hpp"
#include "actors/checkpoint/checkpoint_files.hpp"

#include "tests/support/temp_folder.hpp"
#include <gmock/gmock.h>

#include <limits>

namespace troupe::actors {
namespace {

namespace fs = std::filesystem;

class BestCheckpointTest : public ::testing::Test {
protected:
  void save(std::uint32_t steps, std::uint32_t keep = 0) {
    CheckpointState state;
    state.next_step = StepId{steps};
    commit_checkpoint(begin_checkpoint(run_, state.next_step, Incarnation{1}),
                      state, keep);
  }
  fs::path linked() const {
    std::error_code ignored;
    return fs::read_symlink(run_ / "best", ignored);
  }

  const support::TempFolder folder_;
  const fs::path run_ = folder_.path();
};

TEST_F(BestCheckpointTest, TheHighestValueIsBest) {
  BestCheckpoint best(run_, "val-core/x/reward/mean@1");
  save(1);
  save(2);
  save(3);
  best.consider(StepId{1}, 0.5);
  best.consider(StepId{2}, 0.75);
  best.consider(StepId{3}, std::numeric_limits<double>::quiet_NaN());
  best.refresh();
  EXPECT_EQ(linked(), "checkpoints/step_000002");
  best.consider(StepId{3}, 0.8);
  best.refresh();
  EXPECT_EQ(linked(), "checkpoints/step_000003");
}

TEST_F(BestCheckpointTest, TheLowestLossIsBest) {
  BestCheckpoint best(run_, "val-core/x/loss");
  save(1);
  save(2);
  best.consider(StepId{1}, 2.0);
  best.consider(StepId{2}, 3.0);
  best.refresh();
  EXPECT_EQ(linked(), "checkpoints/step_000001");
}

TEST_F(BestCheckpointTest, StepsWithoutACheckpointDoNotCount) {
  BestCheckpoint best(run_, "reward");
  best.consider(StepId{7}, 9.0);
  best.refresh();
  EXPECT_EQ(linked(), "");
  save(8);
  best.consider(StepId{8}, 1.0);
  best.refresh();
  EXPECT_EQ(linked(), "checkpoints/step_000008");
}

models::MetricSums sums_of(const char* name) {
  models::MetricSums sums;
  sums.add(name, 1, 1);
  return sums;
}

TEST_F(BestCheckpointTest, AMissingMetricIsAnErrorOnceAllMetricsWereReported) {
  BestCheckpoint printed(run_, "test/pass@1", /*evaluates=*/true);
  printed.consider(StepId{1}, sums_of("critic/score/mean"));
  EXPECT_FALSE(printed.mistake()) << "an evaluation may have it";
  printed.consider(StepId{1}, sums_of("val-core/test/pass@1"));
  ASSERT_TRUE(printed.mistake());
  EXPECT_EQ(printed.mistake()->code, Errc::bad_input);
  EXPECT_THAT(printed.mistake()->what,
              ::testing::HasSubstr("try 'val-core/test/pass@1'"));
  BestCheckpoint late(run_, "critic", /*evaluates=*/false, StepId{1});
  late.consider(StepId{1}, sums_of("critic/score/mean"));
  EXPECT_FALSE(late.mistake()) << "the last step's checkpoint is under way";
  BestCheckpoint right(run_, "critic/score/mean", /*evaluates=*/true);
  right.consider(StepId{1}, sums_of("critic/score/mean"));
  right.consider(StepId{1}, sums_of("val-core/test/pass@1"));
  EXPECT_FALSE(right.mistake());
}

TEST_F(BestCheckpointTest, OldCheckpointsAreRemovedButTheBestStays) {
  BestCheckpoint best(run_, "reward");
  for (std::uint32_t steps = 1; steps <= 5; ++steps) {
    best.consider(StepId{steps}, steps == 2 ? 10.0 : 1.0);
    best.refresh();
    save(steps, 1);
    best.refresh();
  }
  EXPECT_TRUE(has_checkpoint(run_, StepId{2}));
  EXPECT_TRUE(has_checkpoint(run_, StepId{5}));
  EXPECT_FALSE(has_checkpoint(run_, StepId{3}));
  EXPECT_FALSE(has_checkpoint(run_, StepId{4}));
}

} // namespace
} // namespace troupe::actors
