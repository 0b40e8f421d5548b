// The frame of GPU kernels on the host: orders of lanes, trees, bf16.
#include "models/gpu/kernels/grid.hpp"
#include "models/gpu/kernels/storage.hpp"

#include <gtest/gtest.h>

#include "tests/support/models/lane_orders.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace troupe::models::gpu {
namespace {

using troupe::testing::in_every_order;
using troupe::testing::run_in_orders;

/// Reads a neighbour's number in the phase that writes it.
struct RacyShift {
  static constexpr int threads = 64;
  struct Shared {
    float part[threads];
  };
  float* out = nullptr;
  bool split = false; ///< a barrier between writing and reading

  TROUPE_KERNEL void operator()(Block<threads> block, Shared& shared) const {
    block.each([&](int lane) { shared.part[lane] = 0; });
    if (split)
      block.each([&](int lane) { shared.part[lane] = float(lane); });
    block.each([&](int lane) {
      if (!split)
        shared.part[lane] = float(lane);
      out[lane] = shared.part[(lane + 1) % threads];
    });
  }
};

std::vector<float> shifted(bool split, LaneOrder order) {
  std::vector<float> out(RacyShift::threads);
  run_on_host(RacyShift{out.data(), split}, 1, order);
  return out;
}

TEST(GpuGrid, ARaceInsideAPhaseShowsAsOtherBits) {
  bool same = true;
  run_in_orders([](LaneOrder order) { return shifted(false, order); }, same);
  EXPECT_FALSE(same);
  run_in_orders([](LaneOrder order) { return shifted(true, order); }, same);
  EXPECT_TRUE(same);
}

/// Each block reads what the block before it wrote.
struct RacyBlocks {
  static constexpr int threads = 32;
  struct Shared {};
  float* out = nullptr;

  TROUPE_KERNEL void operator()(Block<threads> block, Shared&) const {
    block.each([&](int lane) {
      if (lane == 0)
        out[block.index + 1] = out[block.index] + 1;
    });
  }
};

TEST(GpuGrid, ARaceBetweenBlocksShowsAsOtherBits) {
  bool same = true;
  run_in_orders(
    [](LaneOrder order) {
      std::vector<float> out(9);
      run_on_host(RacyBlocks{out.data()}, 8, order);
      return out;
    },
    same);
  EXPECT_FALSE(same);
}

TEST(GpuGrid, EachOrderVisitsEveryLaneOnce) {
  for (LaneOrder order : troupe::testing::lane_orders()) {
    std::array<int, 33> lanes{};
    order.next(lanes);
    std::sort(lanes.begin(), lanes.end());
    for (int i = 0; i < 33; ++i)
      EXPECT_EQ(lanes[std::size_t(i)], i);
  }
}

/// Sums 64 numbers, kept in a Lane between two phases.
struct TreeSum {
  static constexpr int threads = 64;
  struct Shared {
    float part[threads];
    std::uint64_t count;
  };
  const float* in = nullptr;
  float* out = nullptr;

  TROUPE_KERNEL void operator()(Block<threads> block, Shared& shared) const {
    Lane<float, threads> mine;
    block.each([&](int lane) {
      mine[lane] = in[lane];
      if (lane == 0)
        shared.count = 0;
    });
    block.each([&](int lane) {
      shared.part[lane] = mine[lane];
      add_shared(&shared.count, 3);
    });
    sum(block, shared.part);
    block.each([&](int lane) {
      if (lane == 0)
        out[0] = shared.part[0];
      if (lane == 1)
        out[1] = float(shared.count);
    });
  }
};

TEST(GpuGrid, SumsInATreeOfHalves) {
  const auto in = troupe::testing::bf16_numbers(64, 7);
  const auto out = in_every_order([&](LaneOrder order) {
    std::vector<float> sums(2);
    run_on_host(TreeSum{in.data(), sums.data()}, 1, order);
    return sums;
  });
  std::vector<float> tree = in;
  for (std::size_t half = 32; half > 0; half /= 2)
    for (std::size_t i = 0; i < half; ++i)
      tree[i] += tree[i + half];
  EXPECT_EQ(out[0], tree[0]);
  EXPECT_EQ(out[1], 3 * 64);
}

TEST(GpuStorage, Bf16RoundsToNearestEven) {
  const auto rounded = [](float x) {
    Bf16 to{};
    store(&to, x);
    return to_float(to);
  };
  EXPECT_EQ(rounded(1.0F), 1.0F);
  EXPECT_EQ(rounded(0x1.01p0F), 0x1.00p0F); // half way: to even
  EXPECT_EQ(rounded(0x1.03p0F), 0x1.04p0F);
  EXPECT_EQ(rounded(0x1.010002p0F), 0x1.02p0F);
  EXPECT_EQ(rounded(-0x1.03p0F), -0x1.04p0F);
  EXPECT_EQ(rounded(std::numeric_limits<float>::max()),
            std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(rounded(std::numeric_limits<float>::quiet_NaN())));
}

} // namespace
} // namespace troupe::models::gpu
