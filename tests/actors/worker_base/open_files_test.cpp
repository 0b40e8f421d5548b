// How many open files the processes of a run need, and the error where the
// limit is too low.
#include "actors/worker_base/open_files.hpp"
#include "config/base/error.hpp"
#include "plans/presets/presets.hpp"

#include <gmock/gmock.h>

namespace troupe::actors {
namespace {

using ::testing::HasSubstr;

/// A run of one role that trains on all devices.
struct FlatRun {
  plans::Workflow workflow{.name = "sft",
                           .roles = {{.name = "actor", .trained = true}},
                           .calls = {{.name = "train",
                                      .kind = plans::CallKind::train,
                                      .role = "actor",
                                      .reads = {"sequence_ids"},
                                      .fn = "sft_loss"}}};
  plans::ExecutionPlan plan;

  FlatRun(std::uint32_t devices, std::uint32_t workers) {
    plan.cluster.devices_per_node = devices;
    plan.cluster.workers_per_node = workers;
    plans::Placement placement{.strategy = {.dp = devices}};
    for (std::uint32_t rank = 0; rank < devices; ++rank)
      placement.devices.emplace_back(rank);
    plan.calls["train"] = placement;
  }
  OpenFiles needed() const {
    return open_files_needed(workflow, plan);
  }
};

TEST(OpenFilesOfARun, GrowWithWorkersAndWithDevicesOfAWorker) {
  const auto few = FlatRun(8, 2).needed();
  const auto many = FlatRun(8, 8).needed();
  EXPECT_EQ(many.master - few.master, 2U * 6);
  // a connection in each direction and a descriptor for the end of a peer;
  // planes of 1 device instead of 4
  EXPECT_EQ(many.worker - few.worker, 3U * 6 - 3U * 3);
}

TEST(OpenFilesOfARun, GrowLinearlyWhereAHostHasManyDevices) {
  const auto half = FlatRun(32, 2).needed().worker;
  const auto whole = FlatRun(64, 2).needed().worker;
  EXPECT_EQ(whole - half, 3U * 16);
  EXPECT_LT(whole, 1024U) << "the usual limit, at which 64 devices once died";
}

TEST(OpenFilesOfARun, ALowLimitIsReportedWithNumbersAndRemedy) {
  const FlatRun run(500, 500);
  EXPECT_NO_THROW(check_open_files(run.needed(), 500, 20'000));
  try {
    check_open_files(run.needed(), 500, 1024);
    FAIL() << "no complaint";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("a run of 500 workers"));
    EXPECT_THAT(error.what(), HasSubstr("the limit of a process is 1024"));
    EXPECT_THAT(
      error.what(),
      HasSubstr("`ulimit -n " + std::to_string(run.needed().worker) + "`"));
  }
}

TEST(OpenFilesOfARun, TheDoctorsNumberOfWorkersFitsItsLimit) {
  const auto workers = static_cast<std::uint32_t>(workers_within(1024));
  EXPECT_GT(workers, 300U);
  EXPECT_LE(FlatRun(workers, workers).needed().worker, 1024U);
  EXPECT_EQ(workers_within(10), 0U);
}

} // namespace
} // namespace troupe::actors
