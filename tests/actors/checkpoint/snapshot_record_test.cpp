#include "actors/checkpoint/snapshot_record.hpp"

#include <gtest/gtest.h>

#include "tests/support/temp_folder.hpp"

#include <fstream>

namespace troupe::actors {
namespace {

namespace fs = std::filesystem;

class SnapshotRecordFile : public ::testing::Test {
protected:
  SnapshotRecordFile() {
    fs::create_directories(snapshot_record_file(run_).parent_path());
  }

  const support::TempFolder folder_;
  const fs::path run_ = folder_.path();
};

TEST_F(SnapshotRecordFile, IsReadBackBitByBit_I8) {
  SnapshotRecord record;
  record.key = {.id = (std::uint64_t{3} << 32) | 41, .slot = 1};
  record.plan = "calls: {}\n";
  record.state.next_step = StepId{41};
  record.state.versions["actor@actor_train"] = 41;
  record.state.carried["kl_coef"] = 0.1;
  write_snapshot_record(run_, text_of(record, {}));
  const auto read = read_snapshot_record(run_);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->key.id, record.key.id);
  EXPECT_EQ(read->key.slot, 1u);
  EXPECT_EQ(read->plan, record.plan);
  EXPECT_EQ(read->state.next_step, StepId{41});
  EXPECT_EQ(read->state.carried, record.state.carried);
}

TEST_F(SnapshotRecordFile, OneThatCannotBeReadIsNone) {
  EXPECT_FALSE(read_snapshot_record(run_));
  std::ofstream{snapshot_record_file(run_)} << R"({"id": 4)";
  EXPECT_FALSE(read_snapshot_record(run_));
}

TEST_F(SnapshotRecordFile, ForgettingTheNewestLeavesTheOneBefore) {
  const SnapshotRecord before{.key = {.id = 4, .slot = 0},
                              .plan = "calls: {}\n",
                              .state = {.next_step = StepId{3}}};
  write_snapshot_record(
    run_,
    text_of({.key = {.id = 5, .slot = 1}, .plan = "", .state = {}}, before));
  EXPECT_EQ(read_snapshot_record(run_)->key.id, 5u);
  forget_newest_snapshot(run_);
  const auto left = read_snapshot_record(run_);
  ASSERT_TRUE(left);
  EXPECT_EQ(left->key.id, 4u);
  EXPECT_EQ(left->key.slot, 0u);
  EXPECT_EQ(left->plan, before.plan);
  EXPECT_EQ(left->state.next_step, StepId{3});
  forget_newest_snapshot(run_);
  EXPECT_FALSE(read_snapshot_record(run_)) << "there is none before it";
}

TEST_F(SnapshotRecordFile, IsGoneOnceForgotten) {
  write_snapshot_record(run_, text_of({}, {}));
  forget_snapshot(run_);
  EXPECT_FALSE(read_snapshot_record(run_));
  EXPECT_FALSE(fs::exists(run_ / "snapshot"));
}

} // namespace
} // namespace troupe::actors
