// Rotary positions of GPU kernels, run on the host, against the CPU's.
#include "models/gpu/kernels/rotation.hpp"
#include "models/kernels/host_backend.hpp"
#include "models/kernels/rope.hpp"

#include <gtest/gtest.h>

#include "tests/support/models/lane_orders.hpp"

#include <cmath>

namespace troupe::models::gpu {
namespace {

using troupe::testing::bf16_numbers;
using troupe::testing::expect_near;
using troupe::testing::in_every_order;
using troupe::testing::read_back;
using troupe::testing::stored_as;

/// Heads within wider rows; 6 of 7 elements of a head are rotated.
const RopeShape odd_heads{
  .rows = 5, .stride = 7 * 4 + 2, .heads = 3, .head_dim = 7};
/// More pairs than a block has lanes.
const RopeShape wide_heads{
  .rows = 2, .stride = 16 * 40, .heads = 16, .head_dim = 40};
const std::vector<std::int32_t> turned_positions{0, 9, 3, 31, 9};

template <class T>
std::vector<float> rotated(const RopeShape& shape, const RopeTable& table,
                           bool backwards) {
  return in_every_order([&](LaneOrder order) {
    auto x = stored_as<T>(bf16_numbers(shape.rows * shape.stride, 1));
    run_on_host(Rotate<T>{shape, Rotation::of(table), turned_positions.data(),
                          x.data(), backwards},
                Rotate<T>::blocks(shape.rows), order);
    return read_back(x);
  });
}

void expect_rotation(const RopeShape& shape, const RopeTable& table) {
  for (const bool backwards : {false, true}) {
    auto want = bf16_numbers(shape.rows * shape.stride, 1);
    rope(shape, table, turned_positions.data(), want.data(), backwards);
    const auto got = rotated<float>(shape, table, backwards);
    // the CPU may fuse the product and the difference
    expect_near(got, want, 1e-6F, 1e-6F);
    EXPECT_EQ(rotated<Bf16>(shape, table, backwards),
              read_back(stored_as<Bf16>(got)));
  }
}

TEST(GpuRotation, TurnsHeadsBothWaysLikeTheCpu) {
  RopeTable some({1.0F, 0.1F, 0.01F}, 1.3F, host_backend());
  some.grow(32);
  expect_rotation(odd_heads, some);
  std::vector<float> frequencies(20);
  for (std::size_t i = 0; i < frequencies.size(); ++i)
    frequencies[i] = std::pow(0.6F, float(i));
  RopeTable all(frequencies, 1, host_backend());
  all.grow(32);
  expect_rotation(wide_heads, all);
}

} // namespace
} // namespace troupe::models::gpu
