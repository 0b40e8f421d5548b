// ATen's backend over bf16 in memory beside the host's kernels in fp32, on the
// same numbers, which bf16 has exactly: what is stored is rounded once, so that
// it is within 2^-8 of the number itself, and sums and statistics stay fp32.
// With kernels of our own and with ATen's operations.
#include "models/gpu/aten_backend.hpp"
#include "models/kernels/host_backend.hpp"
#include "models/kernels/workspace.hpp"

#include <gtest/gtest.h>

#include "tests/support/models/backend_support.hpp"
#include "tests/support/models/lane_orders.hpp"
#include "tests/support/models/typed_buffers.hpp"

#include <cmath>
#include <string>

namespace troupe::models {
namespace {

using troupe::testing::after_kernel;
using troupe::testing::bf16_numbers;
using troupe::testing::TypedKernel;
using troupe::testing::TypedNumbers;

struct NamedBackend {
  std::string name;
  Backend* backend;
};

/// Returns the backends that store bf16.
std::vector<NamedBackend> storing_backends() {
  static AtenBackend own(at::kCPU,
                         {.bf16_storage = DType::bf16, .own_kernels = true});
  static AtenBackend operations(at::kCPU, {.bf16_storage = DType::bf16});
  std::vector<NamedBackend> backends{{"own kernels", &own},
                                     {"ATen's operations", &operations}};
  Backend& under_test = troupe::testing::backend_under_test();
  if (under_test.storage(DType::bf16) == DType::bf16)
    backends.push_back({"under test", &under_test});
  return backends;
}

/// Returns numbers that a device stores in bf16.
TypedNumbers stored(std::int64_t count, std::uint64_t seed) {
  return {bf16_numbers(count, seed), DType::bf16};
}
/// Returns numbers that a device stores in fp32.
TypedNumbers kept(std::int64_t count, std::uint64_t seed) {
  return {bf16_numbers(count, seed)};
}
TypedNumbers zeros(std::int64_t count, DType type) {
  return {std::vector<float>(static_cast<std::size_t>(count)), type};
}

constexpr float once = 1.0F / 256; ///< of a number that is rounded once

/// Returns how far a number may be from the host's.
float allowed(float wanted, DType type, float rounding) {
  return type == DType::f32
           ? 2e-4F * std::max(1.0F, std::abs(wanted))
           : rounding * std::abs(wanted) + 2e-5F; // of sums that cancel
}

/// Expects the host's numbers, and the same bits again (I8).
void expect_rounded_once(const std::vector<TypedNumbers>& buffers,
                         const TypedKernel& kernel, float rounding = once) {
  std::vector<TypedNumbers> in_fp32 = buffers;
  for (TypedNumbers& buffer : in_fp32)
    buffer.type = DType::f32;
  const auto wanted = after_kernel(host_backend(), in_fp32, kernel);
  for (const auto& [name, backend] : storing_backends()) {
    const auto found = after_kernel(*backend, buffers, kernel);
    for (std::size_t i = 0; i < wanted.size(); ++i)
      for (std::size_t j = 0; j < wanted[i].size(); ++j)
        ASSERT_NEAR(found[i][j], wanted[i][j],
                    allowed(wanted[i][j], buffers[i].type, rounding))
          << name << ": buffer " << i << " element " << j;
    EXPECT_EQ(after_kernel(*backend, buffers, kernel), found) << name;
  }
}

TEST(Bf16Storage, OfSumsIsRoundedOnceAndNotOnTheWayToFp32) {
  constexpr std::int64_t count = 91;
  for (const DType to : {DType::bf16, DType::f32})
    expect_rounded_once(
      {stored(count, 1), stored(count, 2), zeros(count, to)},
      [](Backend& b, const auto& x) { b.add(x[0], x[1], x[2], count); });
  expect_rounded_once({stored(count, 3)}, [](Backend& b, const auto& x) {
    b.scale(x[0], count, 0.3F);
  });
}

TEST(Bf16Storage, OfRowsSumsRepeatedOnesInFp32) {
  constexpr std::int64_t width = 13;
  const std::vector<std::int64_t> rows{3, -1, 3, 6, 3, 3, 0};
  const std::vector<float> weights{0.1F, 0.2F, 0.3F, 0.4F, 0.5F, 0.6F, 0.7F};
  const std::vector<TypedNumbers> buffers{stored(7 * width, 1),
                                          stored(7 * width, 2)};
  expect_rounded_once(buffers, [&](Backend& b, const auto& x) {
    b.scatter_rows({rows, width, 0.5F, weights}, x[0], x[1]);
  });
  expect_rounded_once(buffers, [&](Backend& b, const auto& x) {
    b.gather_rows({rows, width, 0.3F}, x[0], x[1]);
  });
  expect_rounded_once(buffers, [&](Backend& b, const auto& x) {
    b.add_rows({rows, width}, x[0], x[1]);
  });
  expect_rounded_once(
    {stored(7 * width, 3), stored(7 * width, 4), zeros(7, DType::f32)},
    [&](Backend& b, const auto& x) {
      b.row_dots({7, width}, x[0], x[1], x[2].floats());
      b.scale_rows(weights, width, x[0]);
    });
}

TEST(Bf16Storage, OfProductsRoundsTheSumOnce) {
  constexpr std::int64_t m = 19, n = 45, k = 70;
  GemmOptions options;
  options.operands = DType::bf16;
  for (const DType to : {DType::bf16, DType::f32})
    for (const bool accumulate : {false, true}) {
      options.accumulate = accumulate;
      TypedNumbers sums = kept(m * n, 3);
      sums.type = to;
      expect_rounded_once(
        {stored(m * k, 1), stored(n * k, 2), sums},
        [&](Backend& b, const auto& x) {
          b.gemm({m, n, k}, {x[0], k, 1}, {x[1], 1, k}, {x[2], n}, options);
        });
    }
}

TEST(Bf16Storage, OfNormsAndTheirGradients) {
  constexpr std::int64_t rows = 21, width = 37, all = rows * width;
  for (const NormKind kind :
       {NormKind::rms, NormKind::rms_one_plus, NormKind::layer}) {
    const NormShape shape{rows, width, 1e-5F, kind};
    const bool has_bias = kind == NormKind::layer;
    const auto bias
      = [&](TypedPtr x) { return has_bias ? x.floats() : nullptr; };
    expect_rounded_once(
      {stored(all, 1), kept(width, 2), kept(width, 3), zeros(all, DType::bf16),
       zeros(rows, DType::f32)},
      [&](Backend& b, const auto& x) {
        b.norm(shape, x[0], {x[1].floats(), bias(x[2])}, x[3], x[4].floats());
      });
    TypedNumbers rstd{std::vector<float>(rows, 0.9F)};
    expect_rounded_once(
      {stored(all, 4), stored(all, 1), kept(width, 2), kept(width, 3), rstd,
       stored(all, 5), zeros(width, DType::f32), zeros(width, DType::f32)},
      [&](Backend& b, const auto& x) {
        Workspace workspace(b.memory());
        b.norm_backward(shape, x[0], x[1], {x[2].floats(), bias(x[3])},
                        x[4].floats(), x[5], {x[6].floats(), bias(x[7])},
                        workspace);
        b.wait();
      });
  }
}

TEST(Bf16Storage, OfNorms) {
  constexpr std::int64_t rows = 9, width = 37, all = rows * width;
  for (const NormKind kind : {NormKind::rms, NormKind::rms_one_plus})
    expect_rounded_once({stored(all, 1), kept(width, 3),
                         zeros(all, DType::bf16), zeros(rows, DType::f32)},
                        [&](Backend& b, const auto& x) {
                          b.norm({rows, width, 1e-5F, kind}, x[0],
                                 {x[1].floats()}, x[2], x[3].floats());
                        });
}

TEST(Bf16Storage, OfHeadNormsAndRotations) {
  constexpr std::int64_t rows = 6, heads = 3, width = 10, stride = 40;
  const QkNormShape shape{rows, stride, heads, width, 1e-5F};
  expect_rounded_once({kept(width, 1), stored(rows * stride, 2),
                       zeros(rows * heads * width, DType::bf16)},
                      [&](Backend& b, const auto& x) {
                        b.qk_norm(shape, x[0].floats(), x[1], x[2]);
                      });
  expect_rounded_once({kept(width, 1), stored(rows * heads * width, 2),
                       stored(rows * stride, 3), zeros(width, DType::f32)},
                      [&](Backend& b, const auto& x) {
                        Workspace workspace(b.memory());
                        b.qk_norm_backward(shape, x[0].floats(), x[1], x[2],
                                           x[3].floats(), workspace);
                        b.wait();
                      });
  const std::vector<std::int32_t> positions{0, 7, 3, 20, 1, 5};
  for (const bool backwards : {false, true})
    expect_rounded_once(
      {stored(rows * stride, 4)}, [&](Backend& b, const auto& x) {
        RopeTable table({1.0F, 0.3F, 0.1F, 0.02F}, 1.0F, b);
        table.grow(21);
        b.rope({rows, stride, heads, width}, table, positions, x[0], backwards);
        b.wait();
      });
}

TEST(Bf16Storage, OfMlpUnitsAndTheirGradients) {
  constexpr std::int64_t rows = 7, width = 33;
  for (const Activation activation :
       {Activation::silu, Activation::gelu, Activation::gelu_tanh})
    for (const bool gated : {true, false}) {
      const MlpShape shape{rows, width, activation, gated};
      const TypedNumbers in = stored(rows * shape.columns(), 1);
      expect_rounded_once(
        {in, zeros(rows * width, DType::bf16)},
        [&](Backend& b, const auto& x) { b.mlp_unit(shape, x[0], x[1]); });
      expect_rounded_once({in, stored(rows * width, 2)},
                          [&](Backend& b, const auto& x) {
                            b.mlp_unit_backward(shape, x[0], x[1]);
                          });
    }
}

TEST(Bf16Storage, OfAttentionWithoutAFusedKernel) {
  const std::vector<std::int64_t> borders{0, 5, 6, 33};
  AttentionShape shape{4, 2, 10};
  shape.cu_seqlens = borders;
  const std::int64_t rows = borders.back();
  expect_rounded_once({stored(rows * shape.columns(), 1),
                       zeros(rows * shape.heads * shape.head_dim, DType::bf16),
                       zeros(shape.heads * rows, DType::f32)},
                      [&](Backend& b, const auto& x) {
                        b.attention(shape, x[0], x[1], x[2].floats());
                      });
}

TEST(Bf16Storage, OfScalarHeadsInputs) {
  constexpr std::int64_t rows = 6, width = 35;
  expect_rounded_once(
    {kept(width, 1), stored(rows * width, 2), zeros(rows, DType::f32),
     kept(rows, 3), stored(rows * width, 4), zeros(width, DType::f32)},
    [](Backend& b, const auto& x) {
      b.scalar_rows(x[0].floats(), width, x[1], rows, x[2].floats());
      b.scalar_rows_backward(x[0].floats(), width, x[1], rows, x[3].floats(),
                             x[4], x[5].floats());
    });
}

} // namespace
} // namespace troupe::models
