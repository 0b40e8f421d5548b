// Memory files of snapshots of two hosts: what one lends the other copies,
// whole or not at all.
#include "actors/worker_base/snapshot_memory.hpp"
#include "models/engine/plane_file.hpp"
#include "models/parallel/parameters.hpp"

#include <gtest/gtest.h>

#include "tests/support/models/one_matrix.hpp"
#include "tests/support/net/running_keeper.hpp"

#include <algorithm>
#include <numeric>

namespace troupe::actors {
namespace {

using models::Parameters;
using models::Plane;
using troupe::testing::one_matrix;
using troupe::testing::RunningKeeper;

constexpr std::uint64_t newest = 7;

/// A worker with the keeper of its host.
struct HostMemory {
  explicit HostMemory(std::uint32_t number)
    : plane({.self = WorkerId{number}, .token = "secret"}),
      memory(keeper.name()) {
    plane.begin(Incarnation{1});
  }
  ~HostMemory() {
    plane.stop();
    memory.end();
  }

  RunningKeeper keeper;
  net::DataPlane plane;
  SnapshotMemory memory;
};

class SnapshotMemoryTest : public ::testing::Test {
protected:
  SnapshotMemoryTest() {
    here_.plane.set_peer(WorkerId{1}, "127.0.0.1", there_.plane.port());
    for (const Plane plane : {Plane::weight, Plane::m, Plane::v}) {
      const auto floats = planes_.plane(plane);
      std::iota(floats.begin(), floats.end(), 1.5F);
    }
  }

  void write_there(std::uint64_t id) {
    const auto file = there_.memory.open_to_write(there_.plane, theirs_);
    models::write_planes(file.get(), id, planes_, {.optimizer_steps = 5});
    there_.memory.lend(there_.plane, theirs_);
  }
  std::uint64_t copy_here() {
    const auto file = here_.memory.open_to_write(here_.plane, copy_);
    return pull_snapshot(here_.plane, theirs_, newest, file);
  }

  HostMemory here_{0}, there_{1};
  Parameters planes_{one_matrix(), /*trainable=*/true};
  const SnapshotFile theirs_{{.worker = WorkerId{1}, .device = Rank{1}}, 1};
  const SnapshotFile copy_{
    {.worker = WorkerId{0}, .device = Rank{1}, .is_copy = true}, 1};
};

TEST_F(SnapshotMemoryTest, ACopyHasThePlanesBitByBit_I8) {
  write_there(newest);
  EXPECT_FALSE(here_.memory.has(copy_, newest));
  EXPECT_GT(copy_here(), models::plane_file_start);
  EXPECT_TRUE(here_.memory.has(copy_, newest));
  EXPECT_FALSE(here_.memory.has(copy_, newest + 1));
  Parameters read{one_matrix(), /*trainable=*/true};
  const auto counts
    = models::read_planes(here_.memory.open(copy_).get(), newest, read);
  ASSERT_TRUE(counts);
  EXPECT_EQ(counts->optimizer_steps, 5u);
  for (const Plane plane : {Plane::weight, Plane::m, Plane::v})
    EXPECT_TRUE(std::ranges::equal(read.plane(plane), planes_.plane(plane)));
}

TEST_F(SnapshotMemoryTest, WhatIsNotLentOrIsAnotherSnapshotIsNotCopied) {
  EXPECT_EQ(copy_here(), 0u) << "nothing is lent";
  write_there(newest - 1);
  EXPECT_EQ(copy_here(), 0u) << "the one before";
  EXPECT_FALSE(here_.memory.has(copy_, newest));
}

TEST_F(SnapshotMemoryTest, NobodyReadsAFileThatIsBeingWritten) {
  write_there(newest);
  const auto file = there_.memory.open_to_write(there_.plane, theirs_);
  EXPECT_EQ(copy_here(), 0u);
  there_.memory.lend(there_.plane, theirs_);
  there_.memory.lend(there_.plane, theirs_); // a second time changes nothing
  EXPECT_GT(copy_here(), 0u);
}

TEST_F(SnapshotMemoryTest, ALostWorkerIsAFailureAndNotAMissingSnapshot) {
  write_there(newest);
  there_.plane.stop();
  try {
    copy_here();
    FAIL() << "copied from nobody";
  } catch (const FailureError& error) {
    EXPECT_EQ(error.failure().code, Errc::peer_lost);
  }
  EXPECT_FALSE(here_.memory.has(copy_, newest));
}

TEST_F(SnapshotMemoryTest, OpensNoFileOnceItHasEnded) {
  here_.memory.end();
  EXPECT_THROW(here_.memory.open(copy_), FailureError)
    << "it would start another keeper";
}

TEST_F(SnapshotMemoryTest, AnEmptyFileIsNotLent) {
  there_.memory.lend(there_.plane, theirs_);
  EXPECT_EQ(copy_here(), 0u);
}

} // namespace
} // namespace troupe::actors
