#include "models/norm.hpp"

#include "models/host_simd.hpp"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>

namespace troupe::models {

namespace {

// Rows of one partial sum of d_weight: a constant, so that the order of the
// sum does not depend on the thread count.
constexpr std::int64_t norm_chunk_rows = 64;
constexpr std::int64_t norm_grain_floats = 1 << 14; // worth a thread

std::int64_t norm_grain_rows(std::int64_t width) {
  return std::max<std::int64_t>(1, norm_grain_floats / width);
}

float norm_row_rstd(const float* x, std::int64_t width, float eps) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t j = 0; j < width; ++j)
    sum += x[j] * x[j];
  return 1.0F / std::sqrt(sum / static_cast<float>(width) + eps);
}

struct NormBackwardRow {
  const float* dy;
  const float* x;
  const float* weight;
  float rstd;
  float* dx;
  float* d_weight;
};

void norm_backward_row(const NormBackwardRow& row, std::int64_t width) {
  float dot = 0;
#pragma omp simd reduction(+ : dot)
  for (std::int64_t j = 0; j < width; ++j)
    dot += row.dy[j] * row.weight[j] * row.x[j];
  const float rstd = row.rstd;
  const float shared = dot * rstd * rstd * rstd / static_cast<float>(width);
#pragma omp simd
  for (std::int64_t j = 0; j < width; ++j) {
    row.dx[j] += row.dy[j] * row.weight[j] * rstd - row.x[j] * shared;
    row.d_weight[j] += row.dy[j] * row.x[j] * rstd;
  }
}

// sum_N += rows of partial [chunks, N], first to last.
void norm_add_partials(const float* partial, std::int64_t chunks,
                       std::int64_t width, float* sum) {
  for (std::int64_t c = 0; c < chunks; ++c) {
    const float* row = partial + c * width;
#pragma omp simd
    for (std::int64_t j = 0; j < width; ++j)
      sum[j] += row[j];
  }
}

} // namespace

void rms_norm(const NormShape& shape, const float* x_TH, const float* weight_H,
              float* y_TH, float* rstd_T) {
  const std::int64_t width = shape.width;
  const auto run = [&](std::int64_t begin, std::int64_t end) {
    on_best_isa([&] {
      for (std::int64_t t = begin; t < end; ++t) {
        const float* x = x_TH + t * width;
        float* y = y_TH + t * width;
        const float rstd = norm_row_rstd(x, width, shape.eps);
#pragma omp simd
        for (std::int64_t j = 0; j < width; ++j)
          y[j] = x[j] * rstd * weight_H[j];
        if (rstd_T != nullptr)
          rstd_T[t] = rstd;
      }
    });
  };
  at::parallel_for(0, shape.rows, norm_grain_rows(width), run);
}

void rms_norm_backward(const NormShape& shape, const float* dy_TH,
                       const float* x_TH, const float* weight_H,
                       const float* rstd_T, float* dx_TH, float* d_weight_H,
                       Workspace& workspace) {
  const std::int64_t width = shape.width;
  const std::int64_t chunks
    = (shape.rows + norm_chunk_rows - 1) / norm_chunk_rows;
  const Workspace::Mark mark = workspace.mark();
  float* partial = workspace.take(chunks * width);
  const auto run = [&](std::int64_t begin, std::int64_t end) {
    on_best_isa([&] {
      for (std::int64_t c = begin; c < end; ++c) {
        float* sum = partial + c * width;
        std::fill_n(sum, width, 0.0F);
        const std::int64_t last
          = std::min(shape.rows, (c + 1) * norm_chunk_rows);
        for (std::int64_t t = c * norm_chunk_rows; t < last; ++t)
          norm_backward_row({dy_TH + t * width, x_TH + t * width, weight_H,
                             rstd_T[t], dx_TH + t * width, sum},
                            width);
      }
    });
  };
  at::parallel_for(0, chunks, 1, run);
  norm_add_partials(partial, chunks, width, d_weight_H);
  workspace.rewind(mark);
}

void add_column_sums(const float* x_TN, std::int64_t rows, std::int64_t width,
                     std::int64_t stride, float* sum_N, Workspace& workspace) {
  const std::int64_t chunks = (rows + norm_chunk_rows - 1) / norm_chunk_rows;
  const Workspace::Mark mark = workspace.mark();
  float* partial = workspace.take(chunks * width);
  const auto run = [&](std::int64_t begin, std::int64_t end) {
    on_best_isa([&] {
      for (std::int64_t c = begin; c < end; ++c) {
        float* sum = partial + c * width;
        std::fill_n(sum, width, 0.0F);
        const std::int64_t last = std::min(rows, (c + 1) * norm_chunk_rows);
        for (std::int64_t t = c * norm_chunk_rows; t < last; ++t) {
          const float* x = x_TN + t * stride;
#pragma omp simd
          for (std::int64_t j = 0; j < width; ++j)
            sum[j] += x[j];
        }
      }
    });
  };
  at::parallel_for(0, chunks, 1, run);
  norm_add_partials(partial, chunks, width, sum_N);
  workspace.rewind(mark);
}

} // namespace troupe::models
