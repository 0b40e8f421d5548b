#include "actors/checkpoint_files.hpp"
#include "config/error.hpp"

#include <gmock/gmock.h>

#include <fstream>

namespace troupe::actors {
namespace {

namespace fs = std::filesystem;

class CheckpointFiles : public testing::Test {
protected:
  void SetUp() override {
    run_ = fs::path{testing::TempDir()}
           / testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(run_);
    fs::create_directories(run_);
  }
  void TearDown() override {
    fs::remove_all(run_);
  }

  fs::path save(std::uint32_t next_step, std::uint32_t keep = 0) {
    const auto temporary = begin_checkpoint(run_, StepId{next_step});
    fs::create_directories(temporary / "actor");
    std::ofstream{temporary / "actor" / "model.safetensors"} << "weights";
    CheckpointState state;
    state.next_step = StepId{next_step};
    state.versions["actor@actor_train"] = next_step;
    state.carried["kl_coef"] = 0.1;
    return commit_checkpoint(temporary, state, keep);
  }

  fs::path run_;
};

TEST_F(CheckpointFiles, StateComesBackToTheBit) {
  const auto state = read_checkpoint(save(20));
  EXPECT_EQ(state.next_step, StepId{20});
  EXPECT_EQ(state.versions.at("actor@actor_train"), 20U);
  EXPECT_EQ(state.carried.at("kl_coef"), 0.1);
}

TEST_F(CheckpointFiles, AnUncommittedFolderIsNoCheckpoint) {
  save(20);
  begin_checkpoint(run_, StepId{40});
  EXPECT_EQ(latest_checkpoint(run_)->filename(), "step_000020");
}

TEST_F(CheckpointFiles, LatestPointsAtTheNewest) {
  save(20);
  save(40);
  EXPECT_EQ(fs::read_symlink(run_ / "latest"), "checkpoints/step_000040");
}

TEST_F(CheckpointFiles, KeepsTheNewestOnly) {
  save(1, 2);
  save(2, 2);
  save(3, 2);
  EXPECT_FALSE(fs::exists(run_ / "checkpoints" / "step_000001"));
  EXPECT_TRUE(fs::exists(run_ / "checkpoints" / "step_000002"));
  EXPECT_EQ(latest_checkpoint(run_)->filename(), "step_000003");
}

TEST_F(CheckpointFiles, AChangedFileIsNamed) {
  const auto folder = save(20);
  std::ofstream{folder / "actor" / "model.safetensors"} << "Weights";
  try {
    read_checkpoint(folder);
    FAIL() << "a damaged checkpoint was read";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("model.safetensors"));
    EXPECT_THAT(error.what(), testing::HasSubstr("checksum"));
  }
}

TEST_F(CheckpointFiles, AMissingFileIsNamed) {
  const auto folder = save(20);
  fs::remove(folder / "state" / "run.json");
  EXPECT_THROW(read_checkpoint(folder), ConfigError);
}

} // namespace
} // namespace troupe::actors
