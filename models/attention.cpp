// Blocks of query rows against all keys up to the block's end: the scores of a
// block fit the second-level cache for the lengths of RLHF, and the products
// run on gemm's kernels. A (sequence, key-value head) is one piece of work that
// no other touches, so sums have one order whatever the threads.
#include "models/attention.hpp"

#include "models/gemm.hpp"
#include "models/host_math.hpp"
#include "models/host_simd.hpp"
#include "models/soft_cap.hpp"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace troupe::models {

namespace {

constexpr std::int64_t attention_block_rows = 96;

// One (sequence, head): where its rows begin and what stands where.
struct AttentionTask {
  std::int64_t sequence = 0;
  std::int64_t kv_head = 0;
  double cost = 0;
};

std::vector<AttentionTask> attention_tasks(const AttentionShape& shape) {
  std::vector<AttentionTask> tasks;
  const auto sequences = static_cast<std::int64_t>(shape.cu_seqlens.size()) - 1;
  tasks.reserve(static_cast<std::size_t>(sequences * shape.kv_heads));
  for (std::int64_t s = 0; s < sequences; ++s) {
    const auto length
      = static_cast<double>(shape.cu_seqlens[static_cast<std::size_t>(s) + 1]
                            - shape.cu_seqlens[static_cast<std::size_t>(s)]);
    for (std::int64_t g = 0; g < shape.kv_heads; ++g)
      tasks.push_back({s, g, length * (length + 64)});
  }
  return tasks;
}

// Runs contiguous shares of about equal cost on the threads.
template <class Body>
void attention_for_each(const AttentionShape& shape, const Body& body) {
  const std::vector<AttentionTask> tasks = attention_tasks(shape);
  std::vector<double> before(tasks.size() + 1, 0);
  for (std::size_t i = 0; i < tasks.size(); ++i)
    before[i + 1] = before[i] + tasks[i].cost;
  const int threads = at::in_parallel_region() ? 1 : at::get_num_threads();
  const auto first_of = [&](std::int64_t part) {
    const double share = before.back() * static_cast<double>(part)
                         / static_cast<double>(threads);
    return static_cast<std::size_t>(
      std::lower_bound(before.begin(), before.end() - 1, share)
      - before.begin());
  };
  at::parallel_for(0, threads, 1, [&](std::int64_t begin, std::int64_t end) {
    const std::size_t last = end == threads ? tasks.size() : first_of(end);
    for (std::size_t i = first_of(begin); i < last; ++i)
      body(tasks[i]);
  });
}

// The part of the buffers that one head of one sequence reads.
struct HeadView {
  std::int64_t start = 0;  // first token
  std::int64_t length = 0; // tokens
  std::int64_t q = 0;      // columns in the buffer
  std::int64_t k = 0;
  std::int64_t v = 0;
  std::int64_t context = 0; // column in the context
};

HeadView attention_head(const AttentionShape& shape, const AttentionTask& task,
                        std::int64_t member) {
  const std::int64_t d = shape.head_dim;
  const auto s = static_cast<std::size_t>(task.sequence);
  const std::int64_t head
    = task.kv_head * (shape.heads / shape.kv_heads) + member;
  return {shape.cu_seqlens[s],
          shape.cu_seqlens[s + 1] - shape.cu_seqlens[s],
          head * d,
          (shape.heads + task.kv_head) * d,
          (shape.heads + shape.kv_heads + task.kv_head) * d,
          head * d};
}

// Which keys the rows of a block see. Rows are counted from `first` of the
// sequence on, keys from `origin` on.
struct BlockMask {
  std::int64_t first = 0;
  std::int64_t origin = 0;
  std::int64_t window = 0; // 0: none

  std::int64_t begin(std::int64_t row) const {
    const std::int64_t oldest = window > 0 ? first + row + 1 - window : 0;
    return std::max(oldest, origin) - origin;
  }
  std::int64_t end(std::int64_t row) const {
    return first + row + 1 - origin;
  }
};

BlockMask attention_mask(const AttentionShape& shape, std::int64_t row) {
  const std::int64_t oldest = row + 1 - shape.window;
  return {row, shape.window > 0 ? std::max<std::int64_t>(0, oldest) : 0,
          shape.window};
}

// Scores become cap tanh(score scale / cap).
void attention_cap(float* row, std::int64_t count, float scale, float cap) {
  const float inner = scale / cap;
#pragma omp simd
  for (std::int64_t j = 0; j < count; ++j)
    row[j] = cap * soft_tanh(row[j] * inner);
}

// scores[rows, keys] -> probabilities, zero outside the mask.
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
      float sum = 0; // a loop of its own: together they do not vectorise
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

  void head(const HeadView& view, float* head_lse) const {
    static thread_local AlignedFloats scratch;
    const std::int64_t width = shape.columns();
    const std::int64_t d = shape.head_dim;
    const std::int64_t out = shape.heads * d;
    const float scale = shape.score_scale();
    const float* base = qkv + view.start * width;
    const std::int64_t stride = (view.length + 15) / 16 * 16;
    float* scores = scratch.reserve(attention_block_rows * stride);
    for (std::int64_t row = 0; row < view.length; row += attention_block_rows) {
      const std::int64_t rows
        = std::min(attention_block_rows, view.length - row);
      const BlockMask mask = attention_mask(shape, row);
      const std::int64_t keys = row + rows - mask.origin;
      const float* key_base = base + mask.origin * width;
      gemm_serial({rows, keys, d}, {base + row * width + view.q, width, 1},
                  {key_base + view.k, 1, width}, {scores, stride});
      if (shape.cap > 0)
        for (std::int64_t i = 0; i < rows; ++i)
          attention_cap(scores + i * stride, keys, scale, shape.cap);
      attention_softmax(scores, stride, rows, mask,
                        shape.cap > 0 ? 1.0F : scale,
                        head_lse == nullptr ? nullptr : head_lse + row);
      gemm_serial({rows, d, keys}, {scores, stride, 1},
                  {key_base + view.v, width, 1},
                  {context + (view.start + row) * out + view.context, out});
    }
  }
};

// probabilities p and dP -> dS = p * (dP - delta) * scale, over dP; p comes
// from the scores and the saved log-sum-exp, over the scores.
struct SoftmaxBackward {
  float* p;
  float* dp;
  std::int64_t stride;
  std::int64_t rows;
  BlockMask mask;
  float scale;
  float cap;
  const float* lse;
  const float* context; // [rows] of d floats at out
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

  void head(const HeadView& view, const float* head_lse) const {
    static thread_local AlignedFloats scratch;
    const std::int64_t stride = (view.length + 15) / 16 * 16;
    float* p = scratch.reserve(2 * attention_block_rows * stride);
    float* dp = p + attention_block_rows * stride;
    for (std::int64_t row = 0; row < view.length; row += attention_block_rows)
      block(view, row, head_lse + row, p, dp, stride);
  }

  void block(const HeadView& view, std::int64_t row, const float* block_lse,
             float* p, float* dp, std::int64_t stride) const {
    const std::int64_t width = shape.columns();
    const std::int64_t d = shape.head_dim;
    const std::int64_t out = shape.heads * d;
    const std::int64_t rows = std::min(attention_block_rows, view.length - row);
    const BlockMask mask = attention_mask(shape, row);
    const std::int64_t keys = row + rows - mask.origin;
    const float* base = qkv + view.start * width;
    float* d_base = d_qkv + view.start * width;
    const float* q = base + row * width + view.q;
    const float* key_base = base + mask.origin * width;
    float* d_key_base = d_base + mask.origin * width;
    const std::int64_t at = (view.start + row) * out + view.context;
    const float* d_o = d_context + at;
    gemm_serial({rows, keys, d}, {q, width, 1}, {key_base + view.k, 1, width},
                {p, stride});
    gemm_serial({rows, keys, d}, {d_o, out, 1}, {key_base + view.v, 1, width},
                {dp, stride});
    attention_softmax_backward({p, dp, stride, rows, mask, shape.score_scale(),
                                shape.cap, block_lse, context + at, d_o, out,
                                d});
    gemm_serial({keys, d, rows}, {p, 1, stride}, {d_o, out, 1},
                {d_key_base + view.v, width}, {true, nullptr});
    gemm_serial({keys, d, rows}, {dp, 1, stride}, {q, width, 1},
                {d_key_base + view.k, width}, {true, nullptr});
    gemm_serial({rows, d, keys}, {dp, stride, 1}, {key_base + view.k, width, 1},
                {d_base + row * width + view.q, width});
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
  attention_for_each(shape, [&](const AttentionTask& task) {
    for (std::int64_t m = 0; m < members; ++m) {
      const HeadView view = attention_head(shape, task, m);
      const std::int64_t head = task.kv_head * members + m;
      run.head(view, lse_AT == nullptr ? nullptr
                                       : lse_AT + head * tokens + view.start);
    }
  });
}

void attention_backward(const AttentionShape& shape, const float* qkv_TX,
                        const float* context, const float* lse_AT,
                        const float* d_context, float* d_qkv_TX) {
  const AttentionBackward run{shape,  qkv_TX,    context,
                              lse_AT, d_context, d_qkv_TX};
  const std::int64_t tokens = shape.cu_seqlens.back();
  const std::int64_t members = shape.heads / shape.kv_heads;
  attention_for_each(shape, [&](const AttentionTask& task) {
    run.clear(attention_head(shape, task, 0));
    for (std::int64_t m = 0; m < members; ++m) {
      const HeadView view = attention_head(shape, task, m);
      const std::int64_t head = task.kv_head * members + m;
      run.head(view, lse_AT + head * tokens + view.start);
    }
  });
}

} // namespace troupe::models
