// Blocks of query rows against all keys up to the block's end: for the lengths
// of RLHF, the scores of a block fit the second-level cache, and the products
// run on gemm's kernels.
#include "models/kernels/attention.hpp"

#include "models/kernels/attention_parts.hpp"
#include "models/kernels/attention_pieces.hpp"
#include "models/kernels/gemm.hpp"
#include "models/kernels/host_math.hpp"
#include "models/kernels/host_simd.hpp"
#include "models/kernels/soft_cap.hpp"

#include <cmath>

namespace troupe::models {

namespace {

// Computes score = cap tanh(score scale / cap).
void attention_cap(float* row, std::int64_t count, float scale, float cap) {
  const float inner = scale / cap;
#pragma omp simd
  for (std::int64_t j = 0; j < count; ++j)
    row[j] = cap * soft_tanh(row[j] * inner);
}

// Replaces scores[rows, keys] by probabilities, zero outside the mask.
void attention_softmax(float* scores, std::int64_t stride, std::int64_t rows,
                       const BlockMask& mask, float scale, float* lse) {
  on_best_isa([&] {
    for (std::int64_t i = 0; i < rows; ++i) {
      float* row = scores + i * stride;
      const std::int64_t from = mask.begin(i);
      const std::int64_t seen = mask.end(i);
      float top = row[from];
#pragma omp simd reduction(max : top)
      for (std::int64_t j = from; j < seen; ++j)
        top = row[j] > top ? row[j] : top;
#pragma omp simd
      for (std::int64_t j = from; j < seen; ++j)
        row[j] = fast_exp((row[j] - top) * scale);
      float sum = 0; // a separate loop: fused, they do not vectorise
#pragma omp simd reduction(+ : sum)
      for (std::int64_t j = from; j < seen; ++j)
        sum += row[j];
      const float inverse = 1.0F / sum;
#pragma omp simd
      for (std::int64_t j = from; j < seen; ++j)
        row[j] *= inverse;
      std::fill(row, row + from, 0.0F);
      std::fill(row + seen, row + mask.end(rows - 1), 0.0F);
      if (lse != nullptr)
        lse[i] = top * scale + std::log(sum);
    }
  });
}

struct AttentionForward {
  const AttentionShape& shape;
  const float* qkv;
  float* context;
  float* lse;

  void head(const HeadView& view, const HeadKeys& held, float* lse_T) const {
    static thread_local AlignedFloats scratch;
    const std::int64_t width = shape.columns();
    const std::int64_t d = shape.head_dim;
    const std::int64_t out = shape.heads * d;
    const float scale = shape.score_scale();
    const std::int64_t stride = (view.total() + 15) / 16 * 16;
    float* scores = scratch.reserve(attention_block_rows * stride);
    for (RowBlock block = RowBlock::first(view); block.rows > 0;
         block = block.next(view)) {
      const std::int64_t at = view.token(block.row);
      const BlockMask mask = attention_mask(shape, block);
      const std::int64_t keys = block.row + block.rows - mask.origin;
      gemm_serial({block.rows, keys, d}, {qkv + at * width + view.q, width, 1},
                  {held.k + mask.origin * held.stride, 1, held.stride},
                  {scores, stride});
      if (shape.cap > 0)
        for (std::int64_t i = 0; i < block.rows; ++i)
          attention_cap(scores + i * stride, keys, scale, shape.cap);
      attention_softmax(scores, stride, block.rows, mask,
                        shape.cap > 0 ? 1.0F : scale,
                        lse_T == nullptr ? nullptr : lse_T + at);
      gemm_serial({block.rows, d, keys}, {scores, stride, 1},
                  {held.v + mask.origin * held.stride, held.stride, 1},
                  {context + at * out + view.context, out});
    }
  }
};

} // namespace

float AttentionShape::score_scale() const {
  return scale > 0 ? scale : 1.0F / std::sqrt(static_cast<float>(head_dim));
}

void attention(const AttentionShape& shape, const float* qkv_TX, float* context,
               float* lse_AT) {
  const AttentionForward run{shape, qkv_TX, context, lse_AT};
  const std::int64_t tokens = shape.cu_seqlens.back();
  const std::int64_t members = shape.heads / shape.kv_heads;
  const auto sequence = [&](const AttentionTask& task, std::size_t s) {
    static thread_local AlignedFloats scratch;
    const HeadKeys held = attention_keys(
      shape, qkv_TX, attention_head(shape, task, s, 0), scratch);
    for (std::int64_t m = 0; m < members; ++m) {
      const std::int64_t head = task.kv_head * members + m;
      run.head(attention_head(shape, task, s, m), held,
               lse_AT == nullptr ? nullptr : lse_AT + head * tokens);
    }
  };
  attention_for_each(shape, [&](const AttentionTask& task) {
    for (std::size_t s = task.family.first; s < task.family.last; ++s)
      sequence(task, s);
  });
}

void piece_attention(const PieceShape& shape, const PieceRows& rows,
                     TypedPtr context_TX, float* lse_AT) {
  shape.check();
  const AttentionForward run{shape.heads, rows.qkv_TX.floats(),
                             context_TX.floats(), lse_AT};
  const std::int64_t width = shape.key_columns();
  const std::int64_t members = shape.heads.heads / shape.heads.kv_heads;
  attention_for_each(shape, [&](const AttentionTask& task) {
    for (std::size_t i = task.family.first; i < task.family.last; ++i) {
      const AttentionPiece& piece = shape.pieces[i];
      const float* keys = rows.keys_KY.floats() + piece.first_key * width;
      for (std::int64_t m = 0; m < members; ++m) {
        const HeadView view = piece_head(shape, piece, task.kv_head, m);
        const std::int64_t head = task.kv_head * members + m;
        run.head(view, {keys + view.k, keys + view.v, width},
                 lse_AT == nullptr ? nullptr : lse_AT + head * shape.queries);
      }
    }
  });
}

} // namespace troupe::models
