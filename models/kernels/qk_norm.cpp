#include "models/kernels/qk_norm.hpp"

#include "models/kernels/host_simd.hpp"
#include "models/kernels/threads.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::models {

namespace {

// Tokens of one partial sum of d_weight: a constant, for a fixed order.
constexpr std::int64_t qk_norm_chunk_rows = 64;

float rstd_of(float squares, std::int64_t count, float eps) {
  return 1.0F / std::sqrt(squares / static_cast<float>(count) + eps);
}

float row_product(const float* a, const float* b, std::int64_t width) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < width; ++i)
    sum += a[i] * b[i];
  return sum;
}

float weighted_product(const float* a, const float* b, const float* weight,
                       float base, std::int64_t width) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < width; ++i)
    sum += a[i] * (base + weight[i]) * b[i];
  return sum;
}

/// Returns one over the root of the mean square that the norm of a head (or of
/// all) in row t divides by.
float head_rstd(const QkNormShape& s, std::int64_t t, const float* x) {
  return s.sums.squares_T != nullptr
           ? rstd_of(s.sums.squares_T[t], s.sums.count, s.eps)
           : rstd_of(row_product(x, x, s.head_dim), s.head_dim, s.eps);
}

/// Returns what is added to the weights.
float base_of(NormKind kind) {
  return kind == NormKind::rms_one_plus ? 1.0F : 0.0F;
}

void head_backward(const QkNormShape& s, std::int64_t t, const float* x,
                   const float* weight, float* dx, float* d_weight) {
  const std::int64_t dim = s.head_dim;
  const bool of_all = s.sums.dots_T != nullptr;
  const float base = base_of(s.kind);
  const float rstd = head_rstd(s, t, x);
  const float dot
    = of_all ? s.sums.dots_T[t] : weighted_product(dx, x, weight, base, dim);
  const float shared = dot * rstd * rstd * rstd
                       / static_cast<float>(of_all ? s.sums.count : dim);
#pragma omp simd
  for (std::int64_t i = 0; i < dim; ++i) {
    const float dy = dx[i];
    dx[i] = dy * (base + weight[i]) * rstd - x[i] * shared;
    d_weight[i] += dy * x[i] * rstd;
  }
}

} // namespace

void qk_norm(const QkNormShape& s, const float* weight_D, float* x,
             float* raw_TX) {
  const std::int64_t width = s.heads * s.head_dim;
  const float base = base_of(s.kind);
  const auto run = [&](std::int64_t begin, std::int64_t end) {
    on_best_isa([&] {
      for (std::int64_t t = begin; t < end; ++t) {
        float* row = x + t * s.stride;
        if (raw_TX != nullptr)
          std::copy_n(row, width, raw_TX + t * width);
        for (std::int64_t h = 0; h < s.heads; ++h, row += s.head_dim) {
          const float rstd = head_rstd(s, t, row);
#pragma omp simd
          for (std::int64_t i = 0; i < s.head_dim; ++i)
            row[i] = row[i] * rstd * (base + weight_D[i]);
        }
      }
    });
  };
  parallel_for(0, s.rows, qk_norm_chunk_rows, run);
}

void qk_norm_backward(const QkNormShape& s, const float* weight_D,
                      const float* raw_TX, float* dx, float* d_weight_D,
                      Workspace& workspace) {
  const std::int64_t width = s.heads * s.head_dim;
  const std::int64_t chunks
    = (s.rows + qk_norm_chunk_rows - 1) / qk_norm_chunk_rows;
  const Workspace::Mark mark = workspace.mark();
  float* partial = workspace.take(chunks * s.head_dim);
  std::fill_n(partial, chunks * s.head_dim, 0.0F);
  parallel_for(0, chunks, 1, [&](std::int64_t begin, std::int64_t end) {
    on_best_isa([&] {
      for (std::int64_t t = begin * qk_norm_chunk_rows;
           t < std::min(s.rows, end * qk_norm_chunk_rows); ++t)
        for (std::int64_t h = 0; h < s.heads; ++h)
          head_backward(s, t, raw_TX + t * width + h * s.head_dim, weight_D,
                        dx + t * s.stride + h * s.head_dim,
                        partial + t / qk_norm_chunk_rows * s.head_dim);
    });
  });
  for (std::int64_t c = 0; c < chunks; ++c)
    for (std::int64_t i = 0; i < s.head_dim; ++i)
      d_weight_D[i] += partial[c * s.head_dim + i];
  workspace.rewind(mark);
}

void head_sums(const QkNormShape& s, const RowPair& rows, const float* weight,
               float* sums_T) {
  const std::int64_t width = s.heads * s.head_dim;
  const float base = base_of(s.kind);
  parallel_for(
    0, s.rows, qk_norm_chunk_rows, [&](std::int64_t begin, std::int64_t end) {
      on_best_isa([&] {
        for (std::int64_t t = begin; t < end; ++t) {
          const float* a = rows.a + t * rows.a_stride;
          const float* b = rows.b + t * rows.b_stride;
          sums_T[t] = weight == nullptr
                        ? row_product(a, b, width)
                        : weighted_product(a, b, weight, base, width);
        }
      });
    });
}

} // namespace troupe::models
