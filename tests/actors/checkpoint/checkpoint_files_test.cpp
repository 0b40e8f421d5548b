#include "actors/checkpoint/checkpoint_files.hpp"
#include "config/base/atomic_file.hpp"
#include "config/base/error.hpp"

#include "tests/support/temp_folder.hpp"
#include <gmock/gmock.h>

#include <fstream>

namespace troupe::actors {
namespace {

namespace fs = std::filesystem;

class CheckpointFiles : public ::testing::Test {
protected:
  static CallDone in_flight() {
    RunDone part;
    part.holder = WorkerId{3};
    part.samples = {SampleId{1}, SampleId{4}};
    part.tokens = {9, 7};
    part.keys = {"sequence_ids"};
    part.sums = {{"response_length", 0, Bits{0.1}, Bits{2}}};
    part.carried = {{"kl_coef", Bits{-0.0}}};
    CallDone done;
    done.parts = {part};
    return done;
  }

  fs::path save(std::uint32_t next_step, std::uint32_t keep = 0) {
    const auto temporary
      = begin_checkpoint(run_, StepId{next_step}, Incarnation{1});
    fs::create_directories(temporary / "actor");
    std::ofstream{temporary / "actor" / "model.safetensors"} << "weights";
    CheckpointState state;
    state.next_step = StepId{next_step};
    state.versions["actor@actor_train"] = next_step;
    state.carried["kl_coef"] = 0.1;
    state.in_flight.push_back({StepId{next_step}, "actor_gen", in_flight()});
    return commit_checkpoint(temporary, state, keep);
  }

  const support::TempFolder folder_;
  const fs::path run_ = folder_.path();
};

TEST_F(CheckpointFiles, AFileThatAnotherProcessWroteOverIsDamaged) {
  const auto file = [](const fs::path& temporary) {
    fs::create_directories(temporary / "actor");
    return temporary / "actor" / "model.safetensors";
  };
  const auto temporary = begin_checkpoint(run_, StepId{1}, Incarnation{1});
  std::vector<FileWritten> written;
  {
    WrittenFiles collects;
    replace_file(file(temporary), "weights");
    for (const auto& one : collects.take())
      written.push_back({one.path.string(), one.bytes, one.crc32});
  }
  ASSERT_EQ(written.size(), 1U);
  EXPECT_EQ(written[0].crc32, checksum_of(file(temporary)));
  std::ofstream{file(temporary)} << "WEIGHTS"; // a writer that was cut off
  const auto made = commit_checkpoint(temporary, {}, 0, written);
  EXPECT_THROW(read_checkpoint(made), ConfigError);
  const auto again = begin_checkpoint(run_, StepId{2}, Incarnation{1});
  written[0].path = file(again).string();
  std::ofstream{file(again)} << "more weights";
  EXPECT_THROW(commit_checkpoint(again, {}, 0, written), FailureError);
}

TEST_F(CheckpointFiles, StateIsRestoredBitByBit) {
  const auto state = read_checkpoint(save(20));
  EXPECT_EQ(state.next_step, StepId{20});
  EXPECT_EQ(state.versions.at("actor@actor_train"), 20U);
  EXPECT_EQ(state.carried.at("kl_coef"), 0.1);
}

TEST_F(CheckpointFiles, CallsInFlightAreRestoredBitByBit_I8) {
  const auto state = read_checkpoint(save(20));
  ASSERT_EQ(state.in_flight.size(), 1u);
  EXPECT_EQ(state.in_flight[0].step, StepId{20});
  EXPECT_EQ(state.in_flight[0].task, "actor_gen");
  ASSERT_EQ(state.in_flight[0].done.parts.size(), 1u);
  const auto& part = state.in_flight[0].done.parts[0];
  EXPECT_EQ(part.holder, WorkerId{3});
  EXPECT_THAT(part.samples, ::testing::ElementsAre(SampleId{1}, SampleId{4}));
  EXPECT_THAT(part.tokens, ::testing::ElementsAre(9, 7));
  EXPECT_THAT(part.keys, ::testing::ElementsAre("sequence_ids"));
  ASSERT_EQ(part.sums.size(), 1u);
  EXPECT_EQ(part.sums[0].name, "response_length");
  EXPECT_EQ(part.sums[0].sum.value, Bits{0.1}.value);
  ASSERT_EQ(part.carried.size(), 1u);
  EXPECT_EQ(part.carried[0].value.value, Bits{-0.0}.value);
}

TEST_F(CheckpointFiles, AnUncommittedFolderIsNoCheckpoint) {
  save(20);
  begin_checkpoint(run_, StepId{40}, Incarnation{1});
  EXPECT_EQ(latest_checkpoint(run_)->filename(), "step_000020");
}

TEST_F(CheckpointFiles, AWriterOfAnOlderAttemptWritesIntoNoNewerCheckpoint) {
  const auto stale = begin_checkpoint(run_, StepId{40}, Incarnation{1});
  const auto fresh = begin_checkpoint(run_, StepId{40}, Incarnation{2});
  EXPECT_NE(stale, fresh);
  EXPECT_FALSE(fs::exists(stale));
  std::ofstream late{stale / "state" / "actor.optimizer"};
  EXPECT_FALSE(late.is_open());
}

TEST_F(CheckpointFiles, WhatKilledSavesOfAnyStepLeftIsRemoved) {
  begin_checkpoint(run_, StepId{40}, Incarnation{1});
  begin_checkpoint(run_, StepId{60}, Incarnation{1});
  save(20);
  save(20);
  std::vector<std::string> left;
  for (const auto& entry : fs::directory_iterator{run_ / "checkpoints"})
    left.push_back(entry.path().filename().string());
  EXPECT_THAT(left, ::testing::ElementsAre("step_000020"));
}

TEST_F(CheckpointFiles, LatestPointsAtTheNewest) {
  save(20);
  save(40);
  EXPECT_EQ(fs::read_symlink(run_ / "latest"), "checkpoints/step_000040");
}

TEST_F(CheckpointFiles, KeepsOnlyTheNewestCheckpoints) {
  save(1, 2);
  save(2, 2);
  save(3, 2);
  EXPECT_FALSE(fs::exists(run_ / "checkpoints" / "step_000001"));
  EXPECT_TRUE(fs::exists(run_ / "checkpoints" / "step_000002"));
  EXPECT_EQ(latest_checkpoint(run_)->filename(), "step_000003");
}

TEST_F(CheckpointFiles, OtherFoldersOfTheUserAreNoCheckpoints) {
  save(2);
  const auto made = run_ / "checkpoints" / "step_000002";
  for (const char* name : {"step_000002_precious", "step_backup", "step_2"})
    fs::copy(made, run_ / "checkpoints" / name, fs::copy_options::recursive);
  EXPECT_EQ(latest_checkpoint(run_), made);
  save(3, 1);
  EXPECT_FALSE(fs::exists(made));
  for (const char* name : {"step_000002_precious", "step_backup", "step_2"})
    EXPECT_TRUE(fs::exists(run_ / "checkpoints" / name)) << name;
  EXPECT_EQ(latest_checkpoint(run_)->filename(), "step_000003");
}

TEST_F(CheckpointFiles, TheNewestHasTheHighestNumberEvenBeyondSixDigits) {
  save(999'999, 1);
  save(1'000'000, 1);
  EXPECT_FALSE(fs::exists(run_ / "checkpoints" / "step_999999"));
  EXPECT_EQ(latest_checkpoint(run_)->filename(), "step_1000000");
}

TEST_F(CheckpointFiles, TheCheckpointJustWrittenIsNeverRemoved) {
  save(40);
  EXPECT_TRUE(fs::exists(save(20, 1))) << "a later one is stored as well";
}

TEST_F(CheckpointFiles, AChangedFileIsNamed) {
  const auto folder = save(20);
  std::ofstream{folder / "actor" / "model.safetensors"} << "Weights";
  try {
    read_checkpoint(folder);
    FAIL() << "a damaged checkpoint was read";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("model.safetensors"));
    EXPECT_THAT(error.what(), ::testing::HasSubstr("checksum"));
  }
}

TEST_F(CheckpointFiles, AMissingFileIsNamed) {
  const auto folder = save(20);
  fs::remove(folder / "state" / "run.json");
  EXPECT_THROW(read_checkpoint(folder), ConfigError);
}

} // namespace
} // namespace troupe::actors
