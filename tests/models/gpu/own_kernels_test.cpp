// The kernels of our own in ATen's backend beside ATen's operations, in fp32 on
// the same numbers, and which launches they take the place of.
#include "models/gpu/aten_backend.hpp"
#include "models/gpu/own_kernels.hpp"
#include "models/kernels/workspace.hpp"

#include <gtest/gtest.h>

#include "tests/support/models/reference.hpp"
#include "tests/support/models/typed_buffers.hpp"

#include <cmath>
#include <string>
#include <vector>

namespace troupe::models {
namespace {

using troupe::testing::after_kernel;
using troupe::testing::random_floats;
using troupe::testing::TypedKernel;
using troupe::testing::TypedNumbers;

thread_local std::vector<std::string> launched;

/// Runs a kernel with an observer of launches. Returns their names.
std::vector<std::string> launches_of(AtenBackend& backend,
                                     const std::vector<TypedNumbers>& buffers,
                                     const TypedKernel& kernel) {
  launched.clear();
  gpu::observe_kernels(
    [](const gpu::KernelCost& cost) { launched.emplace_back(cost.name); });
  after_kernel(backend, buffers, kernel);
  gpu::observe_kernels(nullptr);
  return launched;
}

/// Expects ATen's numbers of these launches, and none of ours without the
/// option.
void expect_launches(const std::vector<std::string>& wanted,
                     const std::vector<TypedNumbers>& buffers,
                     const TypedKernel& kernel) {
  static AtenBackend own(at::kCPU, {.own_kernels = true});
  static AtenBackend operations(at::kCPU);
  const auto by_aten = after_kernel(operations, buffers, kernel);
  const auto by_own = after_kernel(own, buffers, kernel);
  for (std::size_t i = 0; i < by_aten.size(); ++i)
    for (std::size_t j = 0; j < by_aten[i].size(); ++j)
      if (by_own[i][j] != by_aten[i][j]) // equal infinities have no distance
        ASSERT_NEAR(by_own[i][j], by_aten[i][j],
                    2e-5F * std::max(1.0F, std::abs(by_aten[i][j])))
          << "buffer " << i << " element " << j;
  EXPECT_EQ(launches_of(own, buffers, kernel), wanted);
  EXPECT_EQ(launches_of(operations, buffers, kernel),
            std::vector<std::string>{});
}

TypedNumbers random(std::int64_t count, std::uint64_t seed) {
  return {random_floats(count, seed)};
}
TypedNumbers zeroed(std::int64_t count) {
  return {std::vector<float>(static_cast<std::size_t>(count))};
}

TEST(OwnKernels, NormInOneLaunch) {
  constexpr std::int64_t rows = 9, width = 300, all = rows * width;
  for (const NormKind kind : {NormKind::rms, NormKind::rms_one_plus}) {
    const NormShape shape{rows, width, 1e-5F, kind};
    expect_launches(
      {"rms_norm"},
      {random(all, 1), random(width, 3), zeroed(all), zeroed(rows)},
      [&](Backend& b, const auto& x) {
        b.norm(shape, x[0], {x[1].floats()}, x[2], x[3].floats());
      });
  }
}

TEST(OwnKernels, AddTheGradientsOfNormsInTwoLaunches) {
  constexpr std::int64_t rows = 37, width = 300, all = rows * width;
  for (const NormKind kind : {NormKind::rms, NormKind::rms_one_plus})
    expect_launches({"rms_norm", "rms_norm_backward", "add_rows"},
                    {random(all, 1), random(all, 2), random(width, 3),
                     random(rows, 4), random(all, 5), random(width, 6)},
                    [&](Backend& b, const auto& x) {
                      const NormShape shape{rows, width, 1e-5F, kind};
                      const NormWeights weights{x[2].floats()};
                      Workspace workspace(b.memory());
                      const TypedPtr y = workspace.take(all, DType::f32);
                      b.norm(shape, x[1], weights, y, x[3].floats());
                      b.norm_backward(shape, x[0], x[1], weights, x[3].floats(),
                                      x[4], {x[5].floats()}, workspace);
                      b.wait();
                    });
}

TEST(OwnKernels, LeaveLayerNormToAten) {
  constexpr std::int64_t rows = 4, width = 30;
  expect_launches({},
                  {random(rows * width, 1), random(width, 2), random(width, 3),
                   zeroed(rows * width)},
                  [](Backend& b, const auto& x) {
                    b.norm({rows, width, 1e-5F, NormKind::layer}, x[0],
                           {x[1].floats(), x[2].floats()}, x[3], nullptr);
                  });
}

TEST(OwnKernels, ComputeAnMlpUnitInALaunchEachWay) {
  constexpr std::int64_t rows = 3, width = 1030; // over a tile
  for (const Activation activation :
       {Activation::silu, Activation::gelu, Activation::gelu_tanh})
    for (const bool gated : {true, false}) {
      const MlpShape shape{rows, width, activation, gated};
      expect_launches({"gated_unit", "gated_unit_backward"},
                      {random(rows * shape.columns(), 1), zeroed(rows * width),
                       random(rows * width, 2)},
                      [&](Backend& b, const auto& x) {
                        b.mlp_unit(shape, x[0], x[1]);
                        b.mlp_unit_backward(shape, x[0], x[2]);
                      });
    }
}

TEST(OwnKernels, RotateHeadsInPlaceInOneLaunch) {
  constexpr std::int64_t rows = 5, heads = 3, width = 10, stride = 40;
  const std::vector<std::int32_t> positions{0, 7, 3, 20, 1};
  for (const bool backwards : {false, true})
    expect_launches(
      {"rotate"}, {random(rows * stride, 1)}, [&](Backend& b, const auto& x) {
        RopeTable table({1.0F, 0.3F, 0.1F, 0.02F}, 1.0F, b);
        table.grow(21);
        b.rope({rows, stride, heads, width}, table, positions, x[0], backwards);
        b.wait();
      });
}

TEST(OwnKernels, JoinLogitsOfTwoRanksAndTurnThemIntoTheirGradient) {
  constexpr std::int64_t rows = 6, vocab = 1101;
  const std::vector<std::int64_t> targets{0, 1100, -7, 50, 3, 1099};
  const std::vector<std::int64_t> elsewhere{-1, -1, 4, -1, -1, -1};
  const LogitRows first{rows, vocab, 1 / 0.7F, 0.1F, targets};
  const LogitRows second{rows, vocab, 1 / 0.7F, 0.1F, elsewhere};
  expect_launches(
    {"logit_parts", "logit_parts", "join_logit_parts", "logit_gradient"},
    {random(rows * vocab, 1), random(rows * vocab, 2),
     zeroed(2 * rows * row_part_floats), zeroed(rows), zeroed(rows),
     zeroed(rows), random(rows, 3), random(rows, 4)},
    [&](Backend& b, const auto& x) {
      auto* parts = reinterpret_cast<RowPart*>(x[2].floats());
      b.logit_parts(first, x[0].floats(), parts);
      b.logit_parts(second, x[1].floats(), parts + rows);
      b.join_parts(first, 2, parts,
                   {x[3].floats(), x[4].floats(), x[5].floats()});
      b.logit_gradient(
        first, {x[6].floats(), x[7].floats(), x[4].floats(), x[5].floats()},
        x[0].floats());
    });
}

TEST(OwnKernels, UpdateAllRunsInOneLaunchAndSumTheirSquaresInTwo) {
  const std::vector<OptimizerRun> runs{
    {.begin = 3, .end = 500, .decay = true},
    {.begin = 500, .end = 900, .moment = 497, .counted = false},
    {.begin = 950, .end = 1000, .moment = 897}};
  const AdamNumbers numbers{0.99F, 0.5F, 0.9F, 0.95F, 1e-2F, 1.1F, 1e-6F};
  expect_launches(
    {"run_squares", "join_squares", "adamw"},
    {random(1000, 1),
     random(1000, 2),
     random(947, 3),
     {std::vector<float>(947, 0.3F)},
     zeroed(1)},
    [&](Backend& b, const auto& x) {
      b.fill(x[4], 1,
             static_cast<float>(b.sum_of_squares(x[1].floats(), runs)));
      b.adamw(numbers,
              {.weight = x[0].floats(),
               .grad = x[1].floats(),
               .m = x[2].floats(),
               .v = x[3].floats()},
              runs);
    });
}

} // namespace
} // namespace troupe::models
