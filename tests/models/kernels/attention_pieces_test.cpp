// Attention over pieces beside that of whole sequences, for every way to mask
// and to share heads.
#include "config/base/error.hpp"
#include "models/kernels/attention_pieces.hpp"
#include "models/kernels/host_backend.hpp"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "tests/support/models/context_ranks.hpp"
#include "tests/support/models/reference.hpp"

#include <limits>
#include <vector>

namespace troupe::models {
namespace {

using troupe::testing::AttentionNumbers;
using troupe::testing::largest_difference;
using troupe::testing::random_attention;
using troupe::testing::random_floats;
using troupe::testing::ranks_attention;
using troupe::testing::whole_attention;

struct PieceCase {
  std::vector<std::int64_t> cu_seqlens;
  std::uint32_t ranks;
  std::int64_t heads;
  std::int64_t kv_heads;
  std::int64_t window;
  float cap;
};

class AttentionPieces : public ::testing::TestWithParam<PieceCase> {
protected:
  AttentionShape shape() const {
    const PieceCase& c = GetParam();
    AttentionShape made{c.heads, c.kv_heads, 6, c.cu_seqlens};
    made.window = c.window;
    made.cap = c.cap;
    return made;
  }
  AttentionNumbers ranks() const {
    return ranks_attention(host_backend(), random_attention(shape()),
                           GetParam().ranks, /*tile_rows=*/4);
  }
  AttentionNumbers whole() const {
    return whole_attention(host_backend(), random_attention(shape()));
  }
};

TEST_P(AttentionPieces, RowsHaveTheBitsOfWholeSequences_I1) {
  const AttentionNumbers found = ranks();
  const AttentionNumbers want = whole();
  EXPECT_EQ(found.context_TX, want.context_TX);
  EXPECT_EQ(found.lse_AT, want.lse_AT);
  const std::int64_t x = shape().columns();
  const std::int64_t out = shape().heads * shape().head_dim;
  EXPECT_EQ(largest_difference(found.d_qkv_TX, want.d_qkv_TX, x, 0, out), 0)
    << "gradients of queries";
}

TEST_P(AttentionPieces, GradientsOfKeysAddUpToThoseOfWholeSequences_I1) {
  const AttentionNumbers found = ranks();
  const AttentionNumbers want = whole();
  const std::int64_t x = shape().columns();
  const std::int64_t out = shape().heads * shape().head_dim;
  EXPECT_LT(largest_difference(found.d_qkv_TX, want.d_qkv_TX, x, out, x - out),
            1e-6);
}

INSTANTIATE_TEST_SUITE_P(
  Cases, AttentionPieces,
  ::testing::Values(
    PieceCase{{0, 400}, 2, 4, 2, 0, 0}, PieceCase{{0, 389}, 4, 4, 4, 0, 0},
    PieceCase{{0, 3, 250, 250, 391, 400}, 2, 4, 1, 0, 0},
    PieceCase{{0, 301, 310, 700}, 3, 4, 2, 50, 0},
    PieceCase{{0, 401}, 2, 4, 2, 7, 0}, PieceCase{{0, 200, 333}, 2, 6, 2, 0, 5},
    PieceCase{{0, 9, 200, 333}, 3, 6, 3, 30, 2},
    PieceCase{{0, 11, 20}, 2, 4, 2, 0, 0}, PieceCase{{0, 400}, 1, 4, 2, 0, 0}));

TEST(AttentionPieces, BitsDependOnNoThreadCount_I8) {
  const std::vector<std::int64_t> cu_seqlens{0, 270, 500};
  const auto in = random_attention({4, 2, 6, cu_seqlens});
  const int before = at::get_num_threads();
  std::vector<AttentionNumbers> found;
  for (const int threads : {1, 2}) {
    at::set_num_threads(threads);
    found.push_back(ranks_attention(host_backend(), in, 2, 4));
  }
  at::set_num_threads(before);
  EXPECT_EQ(found[0].context_TX, found[1].context_TX);
  EXPECT_EQ(found[0].d_qkv_TX, found[1].d_qkv_TX);
}

TEST(AttentionPieces, GradientsOfUnseenKeysAreZeroAndOwnKeysStay) {
  const std::vector<AttentionPiece> pieces{{0, 3, 2, 1}}; // sees rows 2 to 5
  PieceShape shape{{2, 1, 4, {}}, pieces, 3, 8};
  const auto qkv = random_floats(3 * 16, 1);
  const auto keys = random_floats(8 * 8, 2);
  std::vector<float> context(3 * 8);
  std::vector<float> lse(2 * 3);
  piece_attention(shape, {qkv.data(), keys.data()}, context.data(), lse.data());
  std::vector<float> d_qkv(3 * 16, 7.0F);
  std::vector<float> d_keys(8 * 8, 9.0F);
  piece_attention_backward(shape, {qkv.data(), keys.data()},
                           {context.data(), lse.data()}, context.data(),
                           {d_qkv.data(), d_keys.data()});
  for (std::size_t row = 0; row < 8; ++row)
    for (std::size_t j = 0; j < 8; ++j)
      EXPECT_EQ(d_keys[row * 8 + j] != 0, row >= 2 && row < 6) << row;
  for (std::size_t row = 0; row < 3; ++row)
    for (std::size_t j = 0; j < 16; ++j)
      EXPECT_EQ(d_qkv[row * 16 + j] == 7.0F, j >= 8) << j;
}

TEST(AttentionPieces, OfOtherOrderOrWithoutTheirKeysAreRefused) {
  const auto check = [](const std::vector<AttentionPiece>& pieces) {
    PieceShape{{2, 1, 4, {}}, pieces, 5, 9}.check();
  };
  check({{0, 2, 0, 0}, {2, 1, 0, 3}, {3, 2, 4, 3}});
  EXPECT_THROW(check({{0, 2, 0, 0}}), InvariantError) << "too few queries";
  EXPECT_THROW(check({{2, 3, 0, 0}, {0, 2, 3, 0}}), InvariantError);
  EXPECT_THROW(check({{0, 5, 5, 0}}), InvariantError) << "too few keys";
  EXPECT_THROW(check({{0, 5, 0, -1}}), InvariantError);
  EXPECT_THROW(check({{0, 2, 0, 0}, {2, 2, 2, 0}, {4, 1, 0, 0}}),
               InvariantError)
    << "the first and the last share keys";
}

} // namespace
} // namespace troupe::models
