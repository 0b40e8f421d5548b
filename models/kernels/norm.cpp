#include "models/kernels/norm.hpp"

#include "models/kernels/host_simd.hpp"
#include "models/kernels/threads.hpp"

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

float norm_row_mean(const float* x, std::int64_t width) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t j = 0; j < width; ++j)
    sum += x[j];
  return sum / static_cast<float>(width);
}

float norm_row_deviation(const float* x, std::int64_t width, float mean,
                         float eps) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t j = 0; j < width; ++j)
    sum += (x[j] - mean) * (x[j] - mean);
  return 1.0F / std::sqrt(sum / static_cast<float>(width) + eps);
}

/// Norms one row; returns its rstd. `plus` is added to the weight.
float norm_rms_row(const float* x, std::int64_t width, float eps, float plus,
                   const float* weight, float* y) {
  const float rstd = norm_row_rstd(x, width, eps);
#pragma omp simd
  for (std::int64_t j = 0; j < width; ++j)
    y[j] = x[j] * rstd * (weight[j] + plus);
  return rstd;
}

float norm_layer_row(const float* x, std::int64_t width, float eps,
                     const NormWeights& weights, float* y) {
  const float mean = norm_row_mean(x, width);
  const float rstd = norm_row_deviation(x, width, mean, eps);
#pragma omp simd
  for (std::int64_t j = 0; j < width; ++j)
    y[j] = (x[j] - mean) * rstd * weights.weight_H[j] + weights.bias_H[j];
  return rstd;
}

struct NormBackwardRow {
  const float* dy;
  const float* x;
  const float* weight;
  float rstd;
  float* dx;
  float* d_weight;
  float* d_bias;
};

void norm_backward_rms_row(const NormBackwardRow& row, std::int64_t width,
                           float plus) {
  float dot = 0;
#pragma omp simd reduction(+ : dot)
  for (std::int64_t j = 0; j < width; ++j)
    dot += row.dy[j] * (row.weight[j] + plus) * row.x[j];
  const float rstd = row.rstd;
  const float shared = dot * rstd * rstd * rstd / static_cast<float>(width);
#pragma omp simd
  for (std::int64_t j = 0; j < width; ++j) {
    row.dx[j] += row.dy[j] * (row.weight[j] + plus) * rstd - row.x[j] * shared;
    row.d_weight[j] += row.dy[j] * row.x[j] * rstd;
  }
}

void norm_backward_layer_row(const NormBackwardRow& row, std::int64_t width) {
  const float mean = norm_row_mean(row.x, width);
  const float rstd = row.rstd;
  float sum = 0; // of g = dy * weight
  float dot = 0; // of g and the normalised x
#pragma omp simd reduction(+ : sum, dot)
  for (std::int64_t j = 0; j < width; ++j) {
    const float g = row.dy[j] * row.weight[j];
    sum += g;
    dot += g * (row.x[j] - mean) * rstd;
  }
  sum /= static_cast<float>(width);
  dot /= static_cast<float>(width);
#pragma omp simd
  for (std::int64_t j = 0; j < width; ++j) {
    const float x = (row.x[j] - mean) * rstd;
    row.dx[j] += (row.dy[j] * row.weight[j] - sum - x * dot) * rstd;
    row.d_weight[j] += row.dy[j] * x;
    row.d_bias[j] += row.dy[j];
  }
}

float norm_plus(NormKind kind) {
  return kind == NormKind::rms_one_plus ? 1.0F : 0.0F;
}

// Computes sum_N += rows of partial [chunks, N], first to last.
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

void norm(const NormShape& shape, const float* x_TH, const NormWeights& weights,
          float* y_TH, float* rstd_T) {
  const std::int64_t width = shape.width;
  const float plus = norm_plus(shape.kind);
  const auto run = [&](std::int64_t begin, std::int64_t end) {
    on_best_isa([&] {
      for (std::int64_t t = begin; t < end; ++t) {
        const float* x = x_TH + t * width;
        float* y = y_TH + t * width;
        const float rstd
          = shape.kind == NormKind::layer
              ? norm_layer_row(x, width, shape.eps, weights, y)
              : norm_rms_row(x, width, shape.eps, plus, weights.weight_H, y);
        if (rstd_T != nullptr)
          rstd_T[t] = rstd;
      }
    });
  };
  parallel_for(0, shape.rows, norm_grain_rows(width), run);
}

void norm_backward(const NormShape& shape, const float* dy_TH,
                   const float* x_TH, const NormWeights& weights,
                   const float* rstd_T, float* dx_TH, const NormGrads& grads,
                   Workspace& workspace) {
  const std::int64_t width = shape.width;
  const bool layer = shape.kind == NormKind::layer;
  const std::int64_t chunks
    = (shape.rows + norm_chunk_rows - 1) / norm_chunk_rows;
  const Workspace::Mark mark = workspace.mark();
  float* partial = workspace.take(chunks * width);
  float* partial_bias = layer ? workspace.take(chunks * width) : nullptr;
  const auto run = [&](std::int64_t begin, std::int64_t end) {
    on_best_isa([&] {
      for (std::int64_t c = begin; c < end; ++c) {
        float* sum = partial + c * width;
        float* bias = layer ? partial_bias + c * width : nullptr;
        std::fill_n(sum, width, 0.0F);
        if (layer)
          std::fill_n(bias, width, 0.0F);
        const std::int64_t last
          = std::min(shape.rows, (c + 1) * norm_chunk_rows);
        for (std::int64_t t = c * norm_chunk_rows; t < last; ++t) {
          const NormBackwardRow row{dy_TH + t * width,
                                    x_TH + t * width,
                                    weights.weight_H,
                                    rstd_T[t],
                                    dx_TH + t * width,
                                    sum,
                                    bias};
          if (layer)
            norm_backward_layer_row(row, width);
          else
            norm_backward_rms_row(row, width, norm_plus(shape.kind));
        }
      }
    });
  };
  parallel_for(0, chunks, 1, run);
  norm_add_partials(partial, chunks, width, grads.weight_H);
  if (layer)
    norm_add_partials(partial_bias, chunks, width, grads.bias_H);
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
  parallel_for(0, chunks, 1, run);
  norm_add_partials(partial, chunks, width, sum_N);
  workspace.rewind(mark);
}

} // namespace troupe::models
