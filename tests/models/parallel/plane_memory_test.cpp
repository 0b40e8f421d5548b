// Planes that come and go beside kernels, on a device whose copies run as late
// as they may (deferred_copies.hpp).
#include "models/parallel/plane_memory.hpp"

#include <gtest/gtest.h>

#include "tests/support/models/deferred_backend.hpp"
#include "tests/support/models/deferred_copies.hpp"

#include <algorithm>
#include <vector>

namespace troupe::models {
namespace {

using troupe::testing::deferred_locked_bytes;
using troupe::testing::DeferredBackend;

constexpr std::int64_t count = 4096;

DeferredBackend& device() {
  return DeferredBackend::instance();
}

float last_of_host(const net::PageBlock& block) {
  return reinterpret_cast<const float*>(block.data())[count - 1];
}

class PlaneOfADevice : public ::testing::Test {
protected:
  void fill(float value) {
    device().fill({plane_.data(), DType::f32}, count, value);
    plane_.changed();
  }
  /// Returns the last number that kernels see.
  float last() {
    return device().read(plane_.data(), count).floats()[count - 1];
  }

  PlaneMemory plane_{count, device().memory(), {}};
};

TEST_F(PlaneOfADevice, IsCopiedAfterItsKernelsWhenOthersReadIt) {
  fill(1);
  plane_.offload();
  EXPECT_EQ(plane_.data(), nullptr);
  EXPECT_EQ(last_of_host(plane_.published()), 1);
}

TEST_F(PlaneOfADevice, IsInHostMemoryBeforeItsMemoryIsUsedAgain) {
  fill(2);
  const float* const place = plane_.data();
  plane_.offload();
  PlaneMemory next(count, device().memory(), {});
  EXPECT_EQ(next.data(), place) << "the memory is free";
  device().fill({next.data(), DType::f32}, count, 9);
  device().wait();
  EXPECT_EQ(last_of_host(plane_.published()), 2);
}

TEST_F(PlaneOfADevice, IsWaitedForByTheKernelsThatUseIt) {
  fill(3);
  plane_.offload();
  plane_.reload();
  EXPECT_EQ(last(), 3);
  fill(4);
  plane_.offload();
  plane_.reload();
  plane_.offload(); // before any kernel has asked for it
  EXPECT_EQ(last_of_host(plane_.published()), 4);
}

TEST_F(PlaneOfADevice, IsReadByTheHostWhereverItIs) {
  fill(5);
  plane_.offload();
  EXPECT_EQ(last_of_host(plane_.newest()), 5);
  plane_.reload();
  const net::PageBlock& newest = plane_.newest();
  std::vector<float> read(count);
  newest.memory()->read(newest.data(), read.data(), newest.size_bytes());
  EXPECT_EQ(read.back(), 5);
}

TEST_F(PlaneOfADevice, MayGoWhileItIsCopied) {
  fill(6);
  plane_.offload();
  plane_.reload();
  plane_.drop();
  plane_.expect();
  EXPECT_EQ(last(), 0) << "of a dropped plane nothing comes back";
}

TEST_F(PlaneOfADevice, LocksItsHostMemoryAsLongAsItHasIt) {
  const auto before = deferred_locked_bytes();
  {
    PlaneMemory other(count, device().memory(), {});
    EXPECT_EQ(deferred_locked_bytes(), before) << "there is none yet";
    other.offload();
    EXPECT_EQ(deferred_locked_bytes(), before + other.size_bytes());
  }
  EXPECT_EQ(deferred_locked_bytes(), before);
}

} // namespace
} // namespace troupe::models
