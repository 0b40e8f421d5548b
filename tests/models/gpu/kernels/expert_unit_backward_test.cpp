// Gradients of experts' units of GPU kernels, run on the host, against the
// CPU's kernels one after the other.
#include "models/gpu/kernels/expert_unit_backward.hpp"
#include "models/kernels/host_backend.hpp"

#include <gtest/gtest.h>

#include "tests/support/models/lane_orders.hpp"

#include <algorithm>
#include <utility>

namespace troupe::models::gpu {
namespace {

using troupe::testing::bf16_numbers;
using troupe::testing::expect_near;
using troupe::testing::in_every_order;
using troupe::testing::read_back;
using troupe::testing::stored_as;

constexpr std::int64_t expert_unit_rows = 5;

/// Returns numbers one after the other.
std::vector<float> in_one_vector(std::vector<std::vector<float>> parts) {
  std::vector<float> all;
  for (const auto& part : parts)
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

template <class Unit, class T>
std::vector<float> expert_unit_by_kernel(std::int64_t width,
                                         std::int64_t hidden) {
  const auto weights = bf16_numbers(expert_unit_rows, 4);
  return in_every_order([&](LaneOrder order) {
    auto in = stored_as<T>(bf16_numbers(expert_unit_rows * 2 * width, 1, 3));
    auto d_act = stored_as<T>(bf16_numbers(expert_unit_rows * width, 2));
    auto dy = stored_as<T>(bf16_numbers(expert_unit_rows * hidden, 3));
    std::vector<float> d_weights(expert_unit_rows, 7.0F);
    run_on_host(ExpertUnitBackward<Unit, T>{in.data(), d_act.data(), dy.data(),
                                            weights.data(), d_weights.data(),
                                            width, hidden},
                expert_unit_rows, order);
    return in_one_vector(
      {read_back(in), read_back(d_act), read_back(dy), d_weights});
  });
}

std::vector<float> expert_unit_by_cpu(Activation activation, std::int64_t width,
                                      std::int64_t hidden) {
  const auto weights = bf16_numbers(expert_unit_rows, 4);
  auto in = bf16_numbers(expert_unit_rows * 2 * width, 1, 3);
  auto d_act = bf16_numbers(expert_unit_rows * width, 2);
  auto dy = bf16_numbers(expert_unit_rows * hidden, 3);
  std::vector<float> act(d_act.size());
  std::vector<float> d_weights(expert_unit_rows);
  const MlpShape shape{expert_unit_rows, width, activation, true};
  Backend& host = host_backend();
  host.mlp_unit(shape, in.data(), act.data());
  host.row_dots({expert_unit_rows, width}, d_act.data(), act.data(),
                d_weights.data());
  host.scale_rows(weights, width, d_act.data());
  host.scale_rows(weights, hidden, dy.data());
  host.mlp_unit_backward(shape, in.data(), d_act.data());
  return in_one_vector({in, d_act, dy, d_weights});
}

template <class Unit>
void expect_the_cpus_expert_unit(Activation activation) {
  for (const auto& [width, hidden] :
       std::vector<std::pair<std::int64_t, std::int64_t>>{
         {1, 1}, {77, 300}, {700, 40}}) {
    const auto want = expert_unit_by_cpu(activation, width, hidden);
    const auto found = expert_unit_by_kernel<Unit, float>(width, hidden);
    expect_near(found, want, 1e-5F, 2e-5F);
    auto rounded = read_back(stored_as<Bf16>(found));
    std::copy(found.end() - expert_unit_rows, found.end(),
              rounded.end() - expert_unit_rows);
    EXPECT_EQ((expert_unit_by_kernel<Unit, Bf16>(width, hidden)), rounded)
      << "all but the weights' gradient is rounded once";
  }
}

TEST(GpuExpertUnitBackward, EqualsTheCpusKernelsOneAfterTheOther) {
  expect_the_cpus_expert_unit<Silu>(Activation::silu);
  expect_the_cpus_expert_unit<Gelu>(Activation::gelu);
  expect_the_cpus_expert_unit<GeluTanh>(Activation::gelu_tanh);
}

} // namespace
} // namespace troupe::models::gpu
