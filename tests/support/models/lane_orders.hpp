// Runs of a GPU kernel on the host under several orders of its lanes and
// blocks: a kernel without races gives the same bits under all of them.
#pragma once

#include "models/gpu/kernels/grid.hpp"
#include "models/gpu/kernels/storage.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

namespace troupe::testing {

using models::gpu::Bf16;
using models::gpu::LaneOrder;

inline std::vector<LaneOrder> lane_orders() {
  return {LaneOrder::forward(), LaneOrder::reversed(), LaneOrder::shuffled(1),
          LaneOrder::shuffled(2)};
}

/// Returns what run(order), a vector of plain numbers, is in forward order, and
/// whether its bits are the same under all orders.
template <class Run>
auto run_in_orders(const Run& run, bool& same) {
  const auto first = run(LaneOrder::forward());
  same = true;
  for (const LaneOrder& order : lane_orders()) {
    const auto other = run(order);
    same &= other.size() == first.size()
            && std::memcmp(other.data(), first.data(),
                           first.size() * sizeof(first[0]))
                 == 0;
  }
  return first;
}

/// Returns what run(order) is, which must not depend on the order.
template <class Run>
auto in_every_order(const Run& run) {
  bool same = false;
  const auto first = run_in_orders(run, same);
  EXPECT_TRUE(same) << "the bits depend on the order of lanes: a race";
  return first;
}

/// Returns numbers of a normal distribution that bf16 can hold, so that a
/// kernel's inputs are the same in both types.
inline std::vector<float> bf16_numbers(std::int64_t count, std::uint64_t seed,
                                       float scale = 1) {
  std::mt19937_64 words(seed);
  std::normal_distribution<float> normal(0, scale);
  std::vector<float> numbers(static_cast<std::size_t>(count));
  for (float& x : numbers)
    x = bf16_to_f32(f32_to_bf16(normal(words)));
  return numbers;
}

/// Stores numbers as T.
template <class T>
std::vector<T> stored_as(const std::vector<float>& numbers) {
  std::vector<T> stored(numbers.size());
  for (std::size_t i = 0; i < numbers.size(); ++i)
    models::gpu::store(&stored[i], numbers[i]);
  return stored;
}

template <class T>
std::vector<float> read_back(const std::vector<T>& stored) {
  std::vector<float> numbers;
  for (const T x : stored)
    numbers.push_back(models::gpu::to_float(x));
  return numbers;
}

/// Expects each number within `relative` of what is wanted, or `absolute`.
inline void expect_near(const std::vector<float>& got,
                        const std::vector<float>& want, float relative,
                        float absolute = 1e-30F) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < want.size(); ++i)
    ASSERT_NEAR(got[i], want[i], relative * std::abs(want[i]) + absolute)
      << "number " << i;
}

} // namespace troupe::testing
