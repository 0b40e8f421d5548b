// Products against loops in double, for every storage order of an operand, and
// the two promises of gemm.hpp: neighbours and threads change no bit (I1, I8).
#include "config/base/float16.hpp"
#include "models/kernels/gemm.hpp"
#include "models/kernels/gemm_kernels.hpp"
#include "models/kernels/host_simd.hpp"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "tests/support/models/reference.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::models {
namespace {

using troupe::testing::random_floats;

struct GemmCase {
  std::int64_t m, n, k;
  DType operands = DType::f32;
  bool parts = false;

  GemmOptions options() const {
    return {.operands = operands, .parts = parts};
  }
  // The product's view of an operand.
  std::vector<float> seen(std::vector<float> x) const {
    for (float& value : x)
      if (operands == DType::bf16)
        value = bf16_to_f32(f32_to_bf16(value));
    return x;
  }
};

class GemmShapes : public ::testing::TestWithParam<GemmCase> {};

// C of A [m,k], B [k,n], both row-major.
std::vector<double> gemm_reference(const GemmCase& c,
                                   const std::vector<float>& a,
                                   const std::vector<float>& b) {
  std::vector<double> out(static_cast<std::size_t>(c.m * c.n));
  for (std::int64_t i = 0; i < c.m; ++i)
    for (std::int64_t j = 0; j < c.n; ++j)
      for (std::int64_t k = 0; k < c.k; ++k)
        out[static_cast<std::size_t>(i * c.n + j)]
          += double{a[static_cast<std::size_t>(i * c.k + k)]}
             * b[static_cast<std::size_t>(k * c.n + j)];
  return out;
}

std::vector<float> transpose(const std::vector<float>& x, std::int64_t rows,
                             std::int64_t cols) {
  std::vector<float> out(x.size());
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < cols; ++j)
      out[static_cast<std::size_t>(j * rows + i)]
        = x[static_cast<std::size_t>(i * cols + j)];
  return out;
}

// Checks one product in one storage order, with and without old content and
// bias.
struct GemmData {
  GemmCase shape;
  std::vector<double> want;
  std::vector<float> start;
  std::vector<float> bias;

  void expect(const ConstMatrix& a, const ConstMatrix& b,
              GemmOptions options) const {
    options.operands = shape.operands;
    options.parts = shape.parts;
    const auto n = static_cast<std::size_t>(shape.n);
    std::vector<float> got = start;
    gemm({shape.m, shape.n, shape.k}, a, b, {got.data(), shape.n}, options);
    for (std::size_t i = 0; i < got.size(); ++i) {
      const double expected = want[i] + (options.accumulate ? start[i] : 0.0F)
                              + (options.bias != nullptr ? bias[i % n] : 0.0F);
      ASSERT_NEAR(got[i], expected,
                  1e-4 * std::sqrt(static_cast<double>(shape.k)) + 1e-6);
    }
  }
};

TEST_P(GemmShapes, EqualTheLoopsForEveryStorageOrder) {
  const GemmCase c = GetParam();
  const auto a = random_floats(c.m * c.k, 1);
  const auto b = random_floats(c.k * c.n, 2);
  const auto a_t = transpose(a, c.m, c.k);
  const auto b_t = transpose(b, c.k, c.n);
  const GemmData data{c, gemm_reference(c, c.seen(a), c.seen(b)),
                      random_floats(c.m * c.n, 4), random_floats(c.n, 3)};
  const ConstMatrix as[] = {{a.data(), c.k, 1}, {a_t.data(), 1, c.m}};
  const ConstMatrix bs[] = {{b.data(), c.n, 1}, {b_t.data(), 1, c.k}};
  for (int order = 0; order < 4; ++order) {
    const ConstMatrix& left = as[order / 2];
    const ConstMatrix& right = bs[order % 2];
    data.expect(left, right, {});
    data.expect(left, right, {true, nullptr});
    data.expect(left, right, {false, data.bias.data()});
    data.expect(left, right, {true, data.bias.data()});
  }
}

TEST_P(GemmShapes, BitsOfARowDependOnNeitherNeighboursNorPacking) {
  const GemmCase c = GetParam();
  const auto a = random_floats(c.m * c.k, 5);
  const auto b_t = random_floats(c.k * c.n, 6);
  const ConstMatrix b{b_t.data(), 1, c.k};
  std::vector<float> whole(static_cast<std::size_t>(c.m * c.n));
  std::vector<float> packed(whole.size());
  std::vector<float> rows(whole.size());
  const GemmOptions options = c.options();
  gemm({c.m, c.n, c.k}, {a.data(), c.k, 1}, b, {whole.data(), c.n}, options);
  gemm(c.m, {a.data(), c.k, 1}, PackedMatrix(b, c.k, c.n, c.operands),
       {packed.data(), c.n});
  for (std::int64_t i = 0; i < c.m; ++i)
    gemm_serial({1, c.n, c.k}, {a.data() + i * c.k, c.k, 1}, b,
                {rows.data() + i * c.n, c.n}, options);
  EXPECT_EQ(whole, rows);
  if (!c.parts) { // packed matrices are never split
    EXPECT_EQ(whole, packed);
  }
}

TEST_P(GemmShapes, BitsDoNotDependOnTheThreadCount) {
  const GemmCase c = GetParam();
  const auto a = random_floats(c.m * c.k, 7);
  const auto b = random_floats(c.k * c.n, 8);
  const int before = at::get_num_threads();
  std::vector<std::vector<float>> results;
  for (const int threads : {1, 2, 3}) {
    at::set_num_threads(threads);
    std::vector<float>& got
      = results.emplace_back(static_cast<std::size_t>(c.m * c.n), 0.5F);
    gemm({c.m, c.n, c.k}, {a.data(), 1, c.m}, {b.data(), c.n, 1},
         {got.data(), c.n}, {true, nullptr, c.operands, c.parts});
  }
  at::set_num_threads(before);
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

INSTANTIATE_TEST_SUITE_P(
  Shapes, GemmShapes,
  ::testing::Values(GemmCase{1, 1, 1}, GemmCase{12, 32, 16},
                    GemmCase{13, 33, 17}, GemmCase{5, 100, 3},
                    GemmCase{97, 65, 130}, GemmCase{64, 48, 1500},
                    GemmCase{3, 257, 64}, GemmCase{121, 7, 40}));
INSTANTIATE_TEST_SUITE_P(Bf16, GemmShapes,
                         ::testing::Values(GemmCase{1, 1, 1, DType::bf16},
                                           GemmCase{12, 32, 16, DType::bf16},
                                           GemmCase{13, 33, 17, DType::bf16},
                                           GemmCase{5, 100, 3, DType::bf16},
                                           GemmCase{97, 65, 131, DType::bf16},
                                           GemmCase{64, 48, 1501, DType::bf16},
                                           GemmCase{3, 257, 64, DType::bf16},
                                           GemmCase{121, 7, 47, DType::bf16}));

INSTANTIATE_TEST_SUITE_P(
  Parts, GemmShapes,
  ::testing::Values(GemmCase{1, 32, 64, DType::f32, true},
                    GemmCase{12, 100, 90, DType::f32, true},
                    GemmCase{32, 64, 96, DType::f32, true},
                    GemmCase{97, 65, 131, DType::f32, true},
                    GemmCase{64, 48, 1501, DType::f32, true},
                    GemmCase{121, 257, 77, DType::f32, true}));

// Returns the distance of a product from that of doubles, over the sum of the
// terms' magnitudes.
double worst_error(const GemmCase& c, const std::vector<float>& a,
                   const std::vector<float>& b) {
  std::vector<float> sizes[2] = {a, b};
  for (std::vector<float>& all : sizes)
    for (float& x : all)
      x = std::abs(x);
  const auto want = gemm_reference(c, a, b);
  const auto whole = gemm_reference(c, sizes[0], sizes[1]);
  std::vector<float> got(want.size());
  gemm({c.m, c.n, c.k}, {a.data(), c.k, 1}, {b.data(), c.n, 1},
       {got.data(), c.n}, c.options());
  double worst = 0;
  for (std::size_t i = 0; i < got.size(); ++i)
    worst = std::max(worst, std::abs(got[i] - want[i]) / whole[i]);
  return worst;
}

// Sums of one number and of many, whatever their magnitudes.
TEST(Gemm, PartsAreAsExactAsFp32) {
  GemmCase c{40, 64, 512, DType::f32, true};
  auto a = random_floats(c.m * c.k, 11);
  auto b = random_floats(c.k * c.n, 12);
  for (std::size_t i = 0; i < a.size(); ++i)
    a[i] = std::ldexp(a[i], static_cast<int>(i * 7 % 41) - 20);
  const double in_parts = worst_error(c, a, b);
  c.parts = false;
  EXPECT_LT(in_parts, 1.5 * worst_error(c, a, b));
  c = {40, 64, 64, DType::f32, true};
  a = random_floats(c.m * c.k, 13);
  b = random_floats(c.k * c.n, 14);
  for (std::size_t i = 0; i < a.size(); ++i)
    if (i % 64 != i / 64)
      a[i] = 0; // one product per element
  EXPECT_LT(worst_error(c, a, b), 0x1p-22);
}

TEST(Gemm, EmptySumsLeaveTheBiasOrTheOldContent) {
  const float bias[] = {1, 2};
  float c[] = {5, 6};
  gemm({1, 2, 0}, {nullptr, 1, 1}, {nullptr, 1, 1}, {c, 2}, {true, nullptr});
  EXPECT_EQ(c[0], 5);
  gemm({1, 2, 0}, {nullptr, 1, 1}, {nullptr, 1, 1}, {c, 2}, {false, bias});
  EXPECT_EQ(c[1], 2);
  gemm({1, 2, 0}, {nullptr, 1, 1}, {nullptr, 1, 1}, {c, 2});
  EXPECT_EQ(c[0], 0);
}

// Every kernel set that this processor runs agrees with the plain one.
TEST(GemmKernels, AllInstructionSetsAgree) {
  std::vector<const gemm_detail::Kernels*> sets{&gemm_detail::plain_kernels()};
  if (host_isa() != Isa::plain)
    sets.push_back(&gemm_detail::avx2_kernels());
  if (host_isa() == Isa::avx512)
    sets.push_back(&gemm_detail::avx512_kernels());
  constexpr std::int64_t depth = 37;
  constexpr std::int64_t cols = 11;
  const auto a = random_floats(12 * depth, 9);
  const auto b_t = random_floats(cols * depth, 10);
  std::vector<std::vector<float>> results;
  for (const gemm_detail::Kernels* set : sets) {
    AlignedFloats panel(depth * set->panel_cols);
    set->pack_transposed(b_t.data(), depth, depth, cols, panel.data());
    std::vector<float>& out = results.emplace_back();
    for (std::int64_t rows = 1; rows <= 4; ++rows) {
      std::vector<float> c(
        static_cast<std::size_t>(set->tile_rows * set->panel_cols), 1.0F);
      set->multiply({depth, a.data(), depth, 1, panel.data(), c.data(),
                     set->panel_cols, true},
                    rows);
      for (std::int64_t i = 0; i < rows; ++i)
        out.insert(out.end(), c.begin() + i * set->panel_cols,
                   c.begin() + i * set->panel_cols + cols);
    }
  }
  for (const auto& result : results)
    for (std::size_t i = 0; i < result.size(); ++i)
      ASSERT_NEAR(result[i], results[0][i], 1e-5);
}

// vdpbf16ps and tiles against fp32 products of previously rounded operands.
TEST(GemmKernels, Bf16PairsEqualRoundedOperands) {
  std::vector<const gemm_detail::Kernels*> sets{
    &gemm_detail::rounding_kernels()};
  if (host_isa() == Isa::avx512 && __builtin_cpu_supports("avx512bf16") != 0)
    sets.push_back(&gemm_detail::avx512_bf16_kernels());
  if (gemm_detail::has_tiles())
    sets.push_back(&gemm_detail::amx_bf16_kernels());
  constexpr std::int64_t depth = 75;
  constexpr std::int64_t cols = 19;
  constexpr std::int64_t rows = 3;
  const auto a = random_floats(rows * depth, 9);
  const auto b = random_floats(cols * depth, 10); // [depth, cols]
  std::vector<std::vector<float>> results;
  for (const gemm_detail::Kernels* set : sets) {
    const std::int64_t width = set->panel_cols;
    AlignedFloats panel(depth * width);
    AlignedFloats along(set->tile_rows * (depth + 32));
    set->pack_rows(b.data(), cols, depth, std::min(cols, width), panel.data(),
                   width);
    set->pack_along(a.data(), depth, depth, rows, along.data());
    std::vector<float> c(static_cast<std::size_t>(set->tile_rows * width));
    if (set->enter != nullptr)
      set->enter();
    set->multiply({set->lanes(depth), along.data(), set->lanes(depth), 1,
                   panel.data(), c.data(), width, false},
                  rows);
    if (set->leave != nullptr)
      set->leave();
    std::vector<float>& out = results.emplace_back();
    for (std::int64_t i = 0; i < rows; ++i)
      out.insert(out.end(), c.begin() + i * width, c.begin() + i * width + 16);
  }
  for (const auto& result : results)
    for (std::size_t i = 0; i < result.size(); ++i)
      ASSERT_NEAR(result[i], results[0][i], 1e-5);
}

} // namespace
} // namespace troupe::models
