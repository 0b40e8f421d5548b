// MLP units of GPU kernels, run on the host, against the CPU's.
#include "models/gpu/kernels/gated_unit.hpp"
#include "models/kernels/mlp.hpp"

#include <gtest/gtest.h>

#include "tests/support/models/lane_orders.hpp"

namespace troupe::models::gpu {
namespace {

using troupe::testing::bf16_numbers;
using troupe::testing::expect_near;
using troupe::testing::in_every_order;
using troupe::testing::read_back;
using troupe::testing::stored_as;

/// Rows and widths: one element, an odd width, more than one tile.
const std::vector<MlpShape>& unit_sizes() {
  static const std::vector<MlpShape> sizes{
    {1, 1, Activation::silu, true},
    {5, 77, Activation::silu, true},
    {2, 2 * UnitTile::width + 3, Activation::silu, true},
    {3, 130, Activation::silu, false}};
  return sizes;
}

std::int64_t in_count(const MlpShape& shape) {
  return shape.rows * shape.columns();
}

template <class Unit, class T>
std::vector<float> forward_of(const MlpShape& shape) {
  const auto in = stored_as<T>(bf16_numbers(in_count(shape), 1, 3));
  return in_every_order([&](LaneOrder order) {
    std::vector<T> act(static_cast<std::size_t>(shape.rows * shape.width));
    run_on_host(
      GatedUnit<Unit, T>{in.data(), act.data(), shape.width, shape.gated},
      GatedUnit<Unit, T>::blocks(shape.rows, shape.width), order);
    return read_back(act);
  });
}

/// Returns the gradient of `in`, then act.
template <class Unit, class T>
std::vector<float> backward_of(const MlpShape& shape) {
  return in_every_order([&](LaneOrder order) {
    auto in = stored_as<T>(bf16_numbers(in_count(shape), 1, 3));
    auto d_act = stored_as<T>(bf16_numbers(shape.rows * shape.width, 2));
    run_on_host(GatedUnitBackward<Unit, T>{in.data(), d_act.data(), shape.width,
                                           shape.gated},
                GatedUnitBackward<Unit, T>::blocks(shape.rows, shape.width),
                order);
    auto joined = read_back(in);
    const auto act = read_back(d_act);
    joined.insert(joined.end(), act.begin(), act.end());
    return joined;
  });
}

template <class Unit>
void expect_the_cpus(Activation activation) {
  for (MlpShape shape : unit_sizes()) {
    shape.activation = activation;
    auto in = bf16_numbers(in_count(shape), 1, 3);
    auto act = bf16_numbers(shape.rows * shape.width, 2);
    std::vector<float> want(act.size());
    mlp_unit(shape, in.data(), want.data());
    const auto forward = forward_of<Unit, float>(shape);
    expect_near(forward, want, 2e-6F, 1e-6F);
    EXPECT_EQ((forward_of<Unit, Bf16>(shape)),
              read_back(stored_as<Bf16>(forward)));
    mlp_unit_backward(shape, in.data(), act.data());
    in.insert(in.end(), act.begin(), act.end());
    const auto backward = backward_of<Unit, float>(shape);
    expect_near(backward, in, 4e-6F, 4e-6F);
    EXPECT_EQ((backward_of<Unit, Bf16>(shape)),
              read_back(stored_as<Bf16>(backward)));
  }
}

TEST(GpuGatedUnit, SiluEqualsTheCpusAndIsRoundedOnceInBf16) {
  expect_the_cpus<Silu>(Activation::silu);
}

TEST(GpuGatedUnit, GeluEqualsTheCpusAndIsRoundedOnceInBf16) {
  expect_the_cpus<Gelu>(Activation::gelu);
}

TEST(GpuGatedUnit, GeluTanhEqualsTheCpusAndIsRoundedOnceInBf16) {
  expect_the_cpus<GeluTanh>(Activation::gelu_tanh);
}

} // namespace
} // namespace troupe::models::gpu
