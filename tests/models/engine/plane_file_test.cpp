// Planes in a file: what is written is read back bit by bit, and nothing else
// is taken for it.
#include "models/engine/plane_file.hpp"
#include "models/parallel/parameters.hpp"

#include <gtest/gtest.h>

#include "tests/support/models/one_matrix.hpp"
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>

namespace troupe::models {
namespace {

using troupe::testing::one_matrix;

class PlaneFile : public ::testing::Test {
protected:
  PlaneFile() {
    float next = 1;
    for (const Plane plane : {Plane::weight, Plane::m, Plane::v}) {
      const auto floats = written_.plane(plane);
      std::iota(floats.begin(), floats.end(), next);
      next += 0.5F;
    }
  }
  ~PlaneFile() override {
    ::close(file_);
  }

  Parameters written_{one_matrix(), /*trainable=*/true};
  int file_ = ::memfd_create("planes", MFD_CLOEXEC);
};

TEST_F(PlaneFile, AllPlanesAndCountsAreReadBackBitByBit_I8) {
  write_planes(file_, 7, written_, {.optimizer_steps = 5, .applied_steps = 4});
  Parameters read{one_matrix(), /*trainable=*/true};
  const auto counts = read_planes(file_, 7, read);
  ASSERT_TRUE(counts);
  EXPECT_EQ(counts->optimizer_steps, 5u);
  EXPECT_EQ(counts->applied_steps, 4u);
  for (const Plane plane : {Plane::weight, Plane::m, Plane::v})
    EXPECT_TRUE(std::ranges::equal(read.plane(plane), written_.plane(plane)));
}

TEST_F(PlaneFile, AnOffloadedPlaneIsWrittenFromHostMemory) {
  written_.offload(Plane::m);
  write_planes(file_, 7, written_, {});
  Parameters read{one_matrix(), /*trainable=*/true};
  ASSERT_TRUE(read_planes(file_, 7, read));
  written_.reload(Plane::m);
  EXPECT_TRUE(
    std::ranges::equal(read.plane(Plane::m), written_.plane(Plane::m)));
}

TEST_F(PlaneFile, IsNoSnapshotUntilAllOfItIsWritten) {
  Parameters read{one_matrix(), /*trainable=*/true};
  EXPECT_FALSE(read_planes(file_, 7, read)) << "empty";
  write_planes(file_, 7, written_, {});
  EXPECT_FALSE(read_planes(file_, 8, read)) << "another snapshot";
  ASSERT_EQ(::ftruncate(file_, 1 << 20), 0);
  EXPECT_FALSE(read_planes(file_, 7, read)) << "cut off";
}

TEST_F(PlaneFile, FitsPlanesOfItsSizesOnly) {
  write_planes(file_, 7, written_, {});
  Parameters frozen{one_matrix(), /*trainable=*/false};
  EXPECT_FALSE(read_planes(file_, 7, frozen));
}

} // namespace
} // namespace troupe::models
