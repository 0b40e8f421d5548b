// AdamW and the norm of GPU kernels, run on the host, against the CPU's.
#include "models/gpu/kernels/adamw_step.hpp"
#include "models/gpu/kernels/squared_norm.hpp"
#include "models/kernels/adamw.hpp"

#include <gtest/gtest.h>

#include "tests/support/models/lane_orders.hpp"

#include <algorithm>

namespace troupe::models::gpu {
namespace {

using troupe::testing::bf16_numbers;
using troupe::testing::expect_near;
using troupe::testing::in_every_order;
using troupe::testing::read_back;
using troupe::testing::stored_as;

constexpr std::int64_t adam_weights = 3000;
constexpr std::int64_t adam_moments = 2600; // of the runs alone, in their order

const std::vector<OptimizerRun> adam_runs{
  {3, 1003, 0, true, true},          // aligned to nothing
  {1003, 1004, 1000, false, true},   // one element
  {1400, 2999, 1001, false, false}}; // another device counts it

const AdamNumbers adam_numbers{.keep = 0.999F,
                               .scale = 0.37F,
                               .beta1 = 0.9F,
                               .beta2 = 0.95F,
                               .step = 1e-2F,
                               .root = 3.2F,
                               .eps = 1e-8F};

/// The four planes one after another.
struct AdamState {
  std::vector<float> weight = bf16_numbers(adam_weights, 1);
  std::vector<float> grad = bf16_numbers(adam_weights, 2);
  std::vector<float> m = bf16_numbers(adam_moments, 3);
  std::vector<float> v = std::vector<float>(adam_moments, 0.25F);

  AdamPlanes planes() {
    return {weight.data(), grad.data(), m.data(), v.data()};
  }
  std::vector<float> joined() const {
    auto all = weight;
    all.insert(all.end(), m.begin(), m.end());
    all.insert(all.end(), v.begin(), v.end());
    return all;
  }
};

TEST(GpuAdamwStep, EqualsTheCpus) {
  AdamState want;
  adamw(adam_numbers, want.planes(), adam_runs);
  const auto got = in_every_order([&](LaneOrder order) {
    AdamState state;
    run_on_host(AdamwStep{adam_numbers, state.planes(), adam_runs.data()},
                AdamwStep::blocks(std::int64_t(adam_runs.size())), order);
    return state.joined();
  });
  expect_near(got, want.joined(), 1e-6F, 1e-7F);
  EXPECT_EQ(got[2], AdamState{}.weight[2]) << "beside the runs";
  EXPECT_EQ(got[1004], AdamState{}.weight[1004]);
}

TEST(GpuAdamwStep, WritesTheWeightsInBf16Beside) {
  AdamState want;
  adamw(adam_numbers, want.planes(), adam_runs);
  const auto initial = bf16_numbers(adam_weights, 1);
  AdamState state;
  std::vector<std::uint16_t> rounded;
  for (const float x : initial)
    rounded.push_back(f32_to_bf16(x));
  AdamPlanes planes = state.planes();
  planes.rounded = rounded.data();
  run_on_host(AdamwStep{adam_numbers, planes, adam_runs.data()},
              AdamwStep::blocks(std::int64_t(adam_runs.size())));
  for (const OptimizerRun& run : adam_runs)
    for (auto i = run.begin; i < run.end; ++i) {
      const auto at = std::size_t(i);
      ASSERT_NEAR(state.weight[at], want.weight[at], 1e-6);
      ASSERT_EQ(rounded[at], f32_to_bf16(state.weight[at]));
    }
  EXPECT_EQ(bf16_to_f32(rounded[2]), initial[2]) << "beside the runs";
}

TEST(GpuSquaredNorm, EqualsTheCpusOverCountedRuns) {
  const AdamState state;
  const double want = sum_of_squares(state.grad.data(), adam_runs);
  const auto got = in_every_order([&](LaneOrder order) {
    std::vector<double> squares(adam_runs.size(), -1);
    run_on_host(RunSquares{state.grad.data(), adam_runs.data(), squares.data()},
                RunSquares::blocks(std::int64_t(adam_runs.size())), order);
    std::vector<double> total(1);
    run_on_host(
      JoinSquares{squares.data(), std::int64_t(adam_runs.size()), total.data()},
      1, order);
    return total;
  });
  EXPECT_NEAR(got[0], want, 1e-6 * want);
  EXPECT_GT(want, 900) << "of 1,001 counted numbers";
}

} // namespace
} // namespace troupe::models::gpu
