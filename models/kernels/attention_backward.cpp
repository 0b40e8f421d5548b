// The same blocks, backwards: probabilities are recomputed from the scores and
// the saved log-sum-exp.
#include "models/kernels/attention.hpp"
#include "models/kernels/attention_parts.hpp"
#include "models/kernels/attention_pieces.hpp"
#include "models/kernels/gemm.hpp"
#include "models/kernels/host_math.hpp"
#include "models/kernels/host_simd.hpp"
#include "models/kernels/soft_cap.hpp"
#include "models/kernels/threads.hpp"

namespace troupe::models {

namespace {

// Computes dS = p * (dP - delta) * scale in place of dP; p is recomputed from
// the scores and the saved log-sum-exp, in place of the scores.
struct SoftmaxBackward {
  float* p;
  float* dp;
  std::int64_t stride;
  std::int64_t rows;
  BlockMask mask;
  float scale;
  float cap;
  const float* lse;
  const float* context; // [rows] of d floats, `out` apart
  const float* d_context;
  std::int64_t out;
  std::int64_t head_dim;
};

void plain_row_backward(float* p, float* dp, std::int64_t count, float scale,
                        float delta, float lse) {
#pragma omp simd
  for (std::int64_t j = 0; j < count; ++j) {
    p[j] = fast_exp(p[j] * scale - lse);
    dp[j] = p[j] * (dp[j] - delta) * scale;
  }
}

void capped_row_backward(const SoftmaxBackward& s, float* p, float* dp,
                         std::int64_t count, float delta, float lse) {
  const float inner = s.scale / s.cap;
#pragma omp simd
  for (std::int64_t j = 0; j < count; ++j) {
    const float t = soft_tanh(p[j] * inner);
    p[j] = fast_exp(s.cap * t - lse);
    dp[j] = p[j] * (dp[j] - delta) * s.scale * (1.0F - t * t);
  }
}

void attention_softmax_backward(const SoftmaxBackward& s) {
  on_best_isa([&] {
    for (std::int64_t i = 0; i < s.rows; ++i) {
      float* p = s.p + i * s.stride;
      float* dp = s.dp + i * s.stride;
      const float* o = s.context + i * s.out;
      const float* d_o = s.d_context + i * s.out;
      const std::int64_t from = s.mask.begin(i);
      const std::int64_t seen = s.mask.end(i);
      float delta = 0;
#pragma omp simd reduction(+ : delta)
      for (std::int64_t j = 0; j < s.head_dim; ++j)
        delta += o[j] * d_o[j];
      const float lse = s.lse[i];
      if (s.cap > 0)
        capped_row_backward(s, p + from, dp + from, seen - from, delta, lse);
      else
        plain_row_backward(p + from, dp + from, seen - from, s.scale, delta,
                           lse);
      for (float* row : {p, dp}) {
        std::fill(row, row + from, 0.0F);
        std::fill(row + seen, row + s.mask.end(s.rows - 1), 0.0F);
      }
    }
  });
}

// Buffers that the gradients of HeadKeys are summed in.
struct DHeadKeys {
  float* k = nullptr;
  float* v = nullptr;
  std::int64_t stride = 0;
};

struct AttentionBackward {
  const AttentionShape& shape;
  const float* qkv;
  const float* context;
  const float* lse;
  const float* d_context;
  float* d_qkv;

  void clear(const HeadView& view) const {
    const std::int64_t width = shape.columns();
    for (std::int64_t t = view.start; t < view.start + view.length; ++t) {
      std::fill_n(d_qkv + t * width + view.k, shape.head_dim, 0.0F);
      std::fill_n(d_qkv + t * width + view.v, shape.head_dim, 0.0F);
    }
  }

  // Returns them in place, or zeros next to each other if the keys are copied.
  DHeadKeys gradients(const HeadView& view, AlignedFloats& scratch) const {
    const std::int64_t width = shape.columns();
    const std::int64_t d = shape.head_dim;
    if (view.past == 0) {
      float* base = d_qkv + view.start * width;
      return {base + view.k, base + view.v, width};
    }
    float* both = scratch.reserve(2 * view.total() * d);
    std::fill_n(both, 2 * view.total() * d, 0.0F);
    return {both, both + d, 2 * d};
  }

  // Adds to `d_held`, the gradients of `held`.
  void head(const HeadView& view, const HeadKeys& held, const DHeadKeys& d_held,
            const float* lse_T) const {
    static thread_local AlignedFloats scratch;
    const std::int64_t stride = (view.total() + 15) / 16 * 16;
    float* p = scratch.reserve(2 * attention_block_rows * stride);
    float* dp = p + attention_block_rows * stride;
    for (RowBlock block = RowBlock::first(view); block.rows > 0;
         block = block.next(view))
      rows_of(view, block, held, d_held, lse_T, {p, dp, stride});
  }

  struct Scores {
    float* p;
    float* dp;
    std::int64_t stride;
  };

  void rows_of(const HeadView& view, const RowBlock& block,
               const HeadKeys& held, const DHeadKeys& d_held,
               const float* lse_T, const Scores& s) const {
    const std::int64_t width = shape.columns();
    const std::int64_t d = shape.head_dim;
    const std::int64_t out = shape.heads * d;
    const std::int64_t rows = block.rows;
    const BlockMask mask = attention_mask(shape, block);
    const std::int64_t keys = block.row + rows - mask.origin;
    const std::int64_t token = view.token(block.row);
    const float* q = qkv + token * width + view.q;
    const float* k = held.k + mask.origin * held.stride;
    const float* v = held.v + mask.origin * held.stride;
    const std::int64_t at = token * out + view.context;
    const float* d_o = d_context + at;
    gemm_serial({rows, keys, d}, {q, width, 1}, {k, 1, held.stride},
                {s.p, s.stride});
    gemm_serial({rows, keys, d}, {d_o, out, 1}, {v, 1, held.stride},
                {s.dp, s.stride});
    attention_softmax_backward({s.p, s.dp, s.stride, rows, mask,
                                shape.score_scale(), shape.cap, lse_T + token,
                                context + at, d_o, out, d});
    gemm_serial({keys, d, rows}, {s.p, 1, s.stride}, {d_o, out, 1},
                {d_held.v + mask.origin * d_held.stride, d_held.stride},
                {true, nullptr});
    gemm_serial({keys, d, rows}, {s.dp, 1, s.stride}, {q, width, 1},
                {d_held.k + mask.origin * d_held.stride, d_held.stride},
                {true, nullptr});
    gemm_serial({rows, d, keys}, {s.dp, s.stride, 1}, {k, held.stride, 1},
                {d_qkv + token * width + view.q, width});
  }

  // Adds the gradients of copied keys and values to those of their tokens.
  void scatter(const HeadView& view, const DHeadKeys& d_held) const {
    const std::int64_t width = shape.columns();
    for (std::int64_t i = 0; i < view.total(); ++i) {
      float* row = d_qkv + view.token(i) * width;
      for (std::int64_t j = 0; j < shape.head_dim; ++j) {
        row[view.k + j] += d_held.k[i * d_held.stride + j];
        row[view.v + j] += d_held.v[i * d_held.stride + j];
      }
    }
  }
};

} // namespace

void attention_backward(const AttentionShape& shape, const float* qkv_TX,
                        const float* context, const float* lse_AT,
                        const float* d_context, float* d_qkv_TX) {
  const AttentionBackward run{shape,  qkv_TX,    context,
                              lse_AT, d_context, d_qkv_TX};
  const std::int64_t tokens = shape.cu_seqlens.back();
  const std::int64_t members = shape.heads / shape.kv_heads;
  const auto sequence = [&](const AttentionTask& task, std::size_t s) {
    static thread_local AlignedFloats scratch;
    static thread_local AlignedFloats d_scratch;
    const HeadView any = attention_head(shape, task, s, 0);
    const HeadKeys held = attention_keys(shape, qkv_TX, any, scratch);
    const DHeadKeys d_held = run.gradients(any, d_scratch);
    for (std::int64_t m = 0; m < members; ++m) {
      const std::int64_t head = task.kv_head * members + m;
      run.head(attention_head(shape, task, s, m), held, d_held,
               lse_AT + head * tokens);
    }
    if (any.past > 0)
      run.scatter(any, d_held);
  };
  attention_for_each(shape, [&](const AttentionTask& task) {
    for (std::size_t s = task.family.first; s < task.family.last; ++s)
      run.clear(attention_head(shape, task, s, 0));
    for (std::size_t s = task.family.first; s < task.family.last; ++s)
      sequence(task, s);
  });
}

void piece_attention_backward(const PieceShape& shape, const PieceRows& rows,
                              const PieceContext& found,
                              ConstTypedPtr d_context_TX,
                              const PieceGrads& to) {
  shape.check();
  const AttentionBackward run{
    shape.heads,  rows.qkv_TX.floats(),  found.context_TX.floats(),
    found.lse_AT, d_context_TX.floats(), to.d_qkv_TX.floats()};
  const std::int64_t width = shape.key_columns();
  const std::int64_t members = shape.heads.heads / shape.heads.kv_heads;
  parallel_for(0, shape.keys, 64, [&](std::int64_t begin, std::int64_t end) {
    std::fill(to.d_keys_KY.floats() + begin * width,
              to.d_keys_KY.floats() + end * width, 0.0F);
  });
  attention_for_each(shape, [&](const AttentionTask& task) {
    for (std::size_t i = task.family.first; i < task.family.last; ++i) {
      const AttentionPiece& piece = shape.pieces[i];
      const float* keys = rows.keys_KY.floats() + piece.first_key * width;
      float* d_keys = to.d_keys_KY.floats() + piece.first_key * width;
      for (std::int64_t m = 0; m < members; ++m) {
        const HeadView view = piece_head(shape, piece, task.kv_head, m);
        const std::int64_t head = task.kv_head * members + m;
        run.head(view, {keys + view.k, keys + view.v, width},
                 {d_keys + view.k, d_keys + view.v, width},
                 found.lse_AT + head * shape.queries);
      }
    }
  });
}

} // namespace troupe::models
