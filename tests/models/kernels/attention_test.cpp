// Attention and norm against loop-by-loop references, gradients against central
// differences of those references.
#include "models/kernels/attention.hpp"
#include "models/kernels/norm.hpp"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "tests/support/models/reference.hpp"

namespace troupe::models {
namespace {

using troupe::testing::Doubles;
using troupe::testing::doubles;
using troupe::testing::random_floats;

const std::vector<std::int64_t> ragged{0, 1, 14, 14, 19};

AttentionShape shape_of(const std::vector<std::int64_t>& cu_seqlens) {
  return {4, 2, 6, cu_seqlens};
}

TEST(Attention, EqualsTheLoopsOnRaggedGroupedHeads) {
  const AttentionShape shape = shape_of(ragged);
  const auto qkv = random_floats(19 * shape.columns(), 1);
  std::vector<float> context(19 * 24);
  attention(shape, qkv.data(), context.data());
  const Doubles want
    = troupe::testing::reference_attention({4, 2, 6}, ragged, doubles(qkv));
  for (std::size_t i = 0; i < want.size(); ++i)
    ASSERT_NEAR(context[i], want[i], 1e-5);
}

TEST(Attention, EqualsTheLoopsOverManyBlocks) {
  const std::vector<std::int64_t> long_one{0, 250};
  const AttentionShape shape = shape_of(long_one);
  const auto qkv = random_floats(250 * shape.columns(), 2);
  std::vector<float> context(250 * 24);
  attention(shape, qkv.data(), context.data());
  const Doubles want
    = troupe::testing::reference_attention({4, 2, 6}, long_one, doubles(qkv));
  for (std::size_t i = 0; i < want.size(); ++i)
    ASSERT_NEAR(context[i], want[i], 1e-5);
}

TEST(Attention, GradientIsTheDifferenceQuotient) {
  const AttentionShape shape = shape_of(ragged);
  const auto qkv = random_floats(19 * shape.columns(), 3);
  const auto d_context = random_floats(19 * 24, 4);
  std::vector<float> context(19 * 24);
  std::vector<float> lse(19 * 4);
  std::vector<float> d_qkv(qkv.size(), 9.0F);
  attention(shape, qkv.data(), context.data(), lse.data());
  attention_backward(shape, qkv.data(), context.data(), lse.data(),
                     d_context.data(), d_qkv.data());
  const Doubles want = troupe::testing::numeric_gradient(
    [](const Doubles& x) {
      return troupe::testing::reference_attention({4, 2, 6}, ragged, x);
    },
    doubles(qkv), doubles(d_context));
  for (std::size_t i = 0; i < want.size(); ++i)
    ASSERT_NEAR(d_qkv[i], want[i], 2e-4) << i;
}

TEST(Attention, BitsDependOnNeitherThreadCountNorBatch) { // I1, I8
  const std::vector<std::int64_t> two{0, 130, 270};
  const std::vector<std::int64_t> second{0, 140};
  const AttentionShape shape = shape_of(two);
  const auto qkv = random_floats(270 * shape.columns(), 5);
  const int before = at::get_num_threads();
  std::vector<std::vector<float>> results;
  for (const int threads : {1, 2}) {
    at::set_num_threads(threads);
    attention(shape, qkv.data(), results.emplace_back(270 * 24).data());
  }
  at::set_num_threads(before);
  std::vector<float> alone(140 * 24);
  attention(shape_of(second), qkv.data() + 130 * shape.columns(), alone.data());
  EXPECT_EQ(results[0], results[1]);
  EXPECT_TRUE(
    std::equal(alone.begin(), alone.end(), results[0].begin() + 130 * 24));
}

TEST(RmsNorm, ValueAndGradientEqualTheLoops) {
  constexpr std::int64_t width = 37;
  constexpr std::int64_t rows = 70; // more than one partial sum
  const auto x = random_floats(rows * width, 6);
  const auto weight = random_floats(width, 7);
  const auto dy = random_floats(rows * width, 8);
  std::vector<float> y(x.size());
  std::vector<float> rstd(rows);
  norm({rows, width, 1e-5F}, x.data(), {weight.data()}, y.data(), rstd.data());
  const Doubles want = troupe::testing::reference_rms_norm(
    doubles(x), doubles(weight), width, 1e-5);
  for (std::size_t i = 0; i < want.size(); ++i)
    ASSERT_NEAR(y[i], want[i], 1e-5);

  std::vector<float> dx(x.size(), 1.0F);
  std::vector<float> d_weight(width, 2.0F);
  Workspace workspace;
  norm_backward({rows, width, 1e-5F}, dy.data(), x.data(), {weight.data()},
                rstd.data(), dx.data(), {d_weight.data()}, workspace);
  const Doubles want_x = troupe::testing::numeric_gradient(
    [&](const Doubles& at) {
      return troupe::testing::reference_rms_norm(at, doubles(weight), width,
                                                 1e-5);
    },
    doubles(x), doubles(dy));
  const Doubles want_weight = troupe::testing::numeric_gradient(
    [&](const Doubles& at) {
      return troupe::testing::reference_rms_norm(doubles(x), at, width, 1e-5);
    },
    doubles(weight), doubles(dy));
  for (std::size_t i = 0; i < want_x.size(); ++i)
    ASSERT_NEAR(dx[i] - 1.0F, want_x[i], 1e-4);
  for (std::size_t i = 0; i < want_weight.size(); ++i)
    ASSERT_NEAR(d_weight[i] - 2.0F, want_weight[i], 1e-4);
}

TEST(ColumnSums, EqualTheSumOfEveryColumn) {
  const auto x = random_floats(130 * 9, 9);
  std::vector<float> sums(5, 1.0F);
  Workspace workspace;
  add_column_sums(x.data() + 2, 130, 5, 9, sums.data(), workspace);
  for (std::size_t j = 0; j < 5; ++j) {
    double want = 1;
    for (std::size_t i = 0; i < 130; ++i)
      want += x[i * 9 + 2 + j];
    EXPECT_NEAR(sums[j], want, 1e-4);
  }
}

} // namespace
} // namespace troupe::models
