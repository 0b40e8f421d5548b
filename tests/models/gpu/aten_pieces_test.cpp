// Attention over pieces by ATen's operations, by a fused kernel and deferred:
// each equals that of whole sequences by our own kernels.
#include "models/gpu/aten_backend.hpp"
#include "models/gpu/flash_attention.hpp"
#include "models/kernels/host_backend.hpp"

#include <gtest/gtest.h>

#include "tests/support/models/backend_support.hpp"
#include "tests/support/models/context_ranks.hpp"
#include "tests/support/models/deferred_backend.hpp"
#include "tests/support/models/reference.hpp"
#include "tests/support/models/slow_flash.hpp"

#include <vector>

namespace troupe::models {
namespace {

using troupe::testing::AttentionInputs;
using troupe::testing::AttentionNumbers;
using troupe::testing::DeferredBackend;
using troupe::testing::largest_difference;
using troupe::testing::random_attention;
using troupe::testing::ranks_attention;
using troupe::testing::SlowFlash;
using troupe::testing::whole_attention;

constexpr std::uint64_t piece_tile_rows = 4;

struct AtenPieceCase {
  std::vector<std::int64_t> cu_seqlens;
  std::uint32_t ranks;
  std::int64_t kv_heads;
  std::int64_t window;
  float cap;
};

class AtenPieceAttention : public ::testing::TestWithParam<AtenPieceCase> {
protected:
  AttentionInputs inputs() const {
    const AtenPieceCase& c = GetParam();
    AttentionShape shape{4, c.kv_heads, 8, c.cu_seqlens};
    shape.window = c.window;
    shape.cap = c.cap;
    shape.operands = DType::bf16;
    return random_attention(shape);
  }
  void expect_whole(Backend& backend, double tolerance) const {
    const AttentionInputs in = inputs();
    const AttentionNumbers want = whole_attention(host_backend(), in);
    const AttentionNumbers found
      = ranks_attention(backend, in, GetParam().ranks, piece_tile_rows);
    const std::int64_t x = in.shape.columns();
    EXPECT_LT(largest_difference(found.context_TX, want.context_TX, 32, 0, 32),
              tolerance);
    EXPECT_LT(largest_difference(found.lse_AT, want.lse_AT, 1, 0, 1),
              tolerance);
    EXPECT_LT(largest_difference(found.d_qkv_TX, want.d_qkv_TX, x, 0, x),
              tolerance);
    EXPECT_EQ(
      ranks_attention(backend, in, GetParam().ranks, piece_tile_rows).d_qkv_TX,
      found.d_qkv_TX)
      << "the same bits (I8)";
  }
};

TEST_P(AtenPieceAttention, ByPlainOperationsEqualsWholeSequences_I1) {
  AtenBackend plain(at::kCPU);
  expect_whole(plain, 5e-6);
}

TEST_P(AtenPieceAttention, ByAFusedKernelEqualsWholeSequences_I1) {
  const SlowFlash kernel(at::kFloat);
  AtenBackend fused(at::kCPU, {.flash = &kernel});
  expect_whole(fused, 5e-6);
  const int calls = GetParam().cap > 0 ? 0 : 2 * int(GetParam().ranks);
  EXPECT_EQ(kernel.forward_calls(), calls) << "one of each rank";
  EXPECT_EQ(kernel.backward_calls(), calls);
}

TEST_P(AtenPieceAttention, ByAFusedKernelOfBf16IsWithin3Percent) {
  const SlowFlash kernel(at::kBFloat16);
  AtenBackend fused(at::kCPU, {.flash = &kernel});
  expect_whole(fused, 3e-2);
}

TEST_P(AtenPieceAttention, DeferredHasTheBitsOfTheHost) {
  const AttentionInputs in = inputs();
  const auto found = ranks_attention(DeferredBackend::instance(), in,
                                     GetParam().ranks, piece_tile_rows);
  const auto want
    = ranks_attention(host_backend(), in, GetParam().ranks, piece_tile_rows);
  EXPECT_EQ(found.context_TX, want.context_TX);
  EXPECT_EQ(found.lse_AT, want.lse_AT);
  EXPECT_EQ(found.d_qkv_TX, want.d_qkv_TX);
}

INSTANTIATE_TEST_SUITE_P(
  Cases, AtenPieceAttention,
  ::testing::Values(AtenPieceCase{{0, 70}, 2, 2, 0, 0},
                    AtenPieceCase{{0, 3, 50, 50, 91, 99}, 2, 4, 0, 0},
                    AtenPieceCase{{0, 61, 70, 131}, 3, 2, 20, 0},
                    AtenPieceCase{{0, 64}, 4, 1, 5, 0},
                    AtenPieceCase{{0, 9, 80, 93}, 2, 2, 15, 2},
                    AtenPieceCase{{0, 12, 21}, 2, 4, 0, 0},
                    AtenPieceCase{{0, 40, 45}, 1, 2, 0, 0}));

TEST(AtenPieceAttention, KeysThatTwoPiecesShareAreCopiedWhateverTheirNumber) {
  const std::vector<AttentionPiece> pieces{{0, 1, 0, 1}, {1, 1, 1, 1}};
  PieceShape shape{{2, 1, 8, {}}, pieces, 2, 4}; // four copies of three keys
  shape.heads.operands = DType::bf16;
  const auto qkv = troupe::testing::random_floats(2 * 32, 1);
  const auto keys = troupe::testing::random_floats(4 * 16, 2);
  const SlowFlash kernel(at::kFloat);
  AtenBackend fused(at::kCPU, {.flash = &kernel});
  std::vector<std::vector<float>> found;
  for (Backend* backend : {&host_backend(), static_cast<Backend*>(&fused)}) {
    std::vector<float> context(2 * 16), lse(2 * 2), d_qkv(2 * 32);
    std::vector<float>& d_keys = found.emplace_back(4 * 16, 7.0F);
    const PieceRows rows{qkv.data(), keys.data()};
    backend->piece_attention(shape, rows, context.data(), lse.data());
    backend->piece_attention_backward(shape, rows, {context.data(), lse.data()},
                                      context.data(),
                                      {d_qkv.data(), d_keys.data()});
  }
  EXPECT_EQ(kernel.forward_calls(), 1);
  EXPECT_LT(largest_difference(found[1], found[0], 16, 0, 16), 1e-5);
}

// Runs on the backend of each computing run, so on a GPU where there is one.
TEST(PieceBackendKernels, EqualWholeSequencesInFp32AndByTheFusedKernel) {
  const std::vector<std::int64_t> cu_seqlens{0, 200, 210, 333};
  for (const DType operands : {DType::f32, DType::bf16})
    for (const std::int64_t window : {0, 40}) {
      AttentionShape shape{4, 2, 64, cu_seqlens};
      shape.window = window;
      shape.operands = operands;
      const AttentionInputs in = random_attention(shape);
      const AttentionNumbers want = whole_attention(host_backend(), in);
      Backend& backend = troupe::testing::backend_under_test();
      backend.enter();
      const AttentionNumbers found
        = ranks_attention(backend, in, 2, piece_tile_rows);
      const double tolerance = operands == DType::f32 ? 2e-4 : 3e-2;
      EXPECT_LT(
        largest_difference(found.context_TX, want.context_TX, 256, 0, 256),
        tolerance);
      EXPECT_LT(largest_difference(found.d_qkv_TX, want.d_qkv_TX,
                                   shape.columns(), 0, shape.columns()),
                tolerance);
      EXPECT_EQ(ranks_attention(backend, in, 2, piece_tile_rows).d_qkv_TX,
                found.d_qkv_TX)
        << "the same bits (I8)";
    }
}

} // namespace
} // namespace troupe::models
