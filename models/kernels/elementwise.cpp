#include "models/kernels/elementwise.hpp"

#include "models/kernels/threads.hpp"

#include <algorithm>

namespace troupe::models {

namespace {

constexpr std::int64_t blocks_grain = 1 << 16;    // floats worth a thread
constexpr std::int64_t blocks_grain_columns = 64; // one cache line of 4

} // namespace

void fill_floats(float* x, std::int64_t count, float value) {
  parallel_for(0, count, blocks_grain,
               [&](std::int64_t begin, std::int64_t end) {
                 std::fill(x + begin, x + end, value);
               });
}

void copy_floats(const float* from, float* to, std::int64_t count) {
  if (from == to)
    return;
  parallel_for(0, count, blocks_grain,
               [&](std::int64_t begin, std::int64_t end) {
                 std::copy(from + begin, from + end, to + begin);
               });
}

void add_floats(const float* a, const float* b, float* to, std::int64_t count) {
  parallel_for(0, count, blocks_grain,
               [&](std::int64_t begin, std::int64_t end) {
#pragma omp simd
                 for (std::int64_t i = begin; i < end; ++i)
                   to[i] = a[i] + b[i];
               });
}

void scale_floats(float* x, std::int64_t count, float factor) {
  parallel_for(0, count, blocks_grain,
               [&](std::int64_t begin, std::int64_t end) {
#pragma omp simd
                 for (std::int64_t i = begin; i < end; ++i)
                   x[i] *= factor;
               });
}

void copy_box(const BoxCopy& box, const float* from, float* to) {
  for (std::int64_t i = 0; i < box.sizes[0]; ++i)
    for (std::int64_t j = 0; j < box.sizes[1]; ++j) {
      const float* source
        = from + i * box.from_strides[0] + j * box.from_strides[1];
      float* target = to + i * box.to_strides[0] + j * box.to_strides[1];
      for (std::int64_t k = 0; k < box.sizes[2]; ++k)
        std::copy_n(source + k * box.from_strides[2], box.sizes[3],
                    target + k * box.to_strides[2]);
    }
}

void gather_rows(const RowList& list, const float* from, float* to) {
  for (const std::int64_t row : list.rows) {
    if (row < 0)
      std::fill_n(to, list.width, 0.0F);
    else
      std::copy_n(from + row * list.width, list.width, to);
    if (list.factor != 1.0F)
      for (std::int64_t j = 0; j < list.width; ++j)
        to[j] *= list.factor;
    to += list.width;
  }
}

void add_rows(const RowList& list, const float* from, float* to) {
  for (const std::int64_t row : list.rows) {
    for (std::int64_t j = 0; j < list.width && row >= 0; ++j)
      to[j] += from[row * list.width + j];
    to += list.width;
  }
}

// Each thread handles some columns, so rows add up in the list's order.
void scatter_rows(const RowList& list, const float* from, float* to) {
  const auto count = static_cast<std::int64_t>(list.rows.size());
  const std::int64_t grain = std::max(
    blocks_grain_columns, blocks_grain / std::max<std::int64_t>(1, count));
  parallel_for(0, list.width, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t row = list.rows[static_cast<std::size_t>(i)];
      if (row < 0)
        continue;
      const float factor
        = list.weights.empty()
            ? list.factor
            : list.factor * list.weights[static_cast<std::size_t>(i)];
      const float* source = from + i * list.width;
      float* target = to + row * list.width;
#pragma omp simd
      for (std::int64_t j = begin; j < end; ++j)
        target[j] += factor * source[j];
    }
  });
}

void row_dots(const WholeRows& shape, const float* a, const float* b,
              float* dots_R) {
  const std::int64_t grain = std::max<std::int64_t>(
    1, blocks_grain / std::max<std::int64_t>(1, shape.width));
  parallel_for(0, shape.rows, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      float dot = 0;
      for (std::int64_t j = 0; j < shape.width; ++j)
        dot += a[i * shape.width + j] * b[i * shape.width + j];
      dots_R[i] = dot;
    }
  });
}

void scale_rows(std::span<const float> weights_R, std::int64_t width,
                float* x) {
  const std::int64_t grain = std::max<std::int64_t>(
    1, blocks_grain / std::max<std::int64_t>(1, width));
  parallel_for(0, static_cast<std::int64_t>(weights_R.size()), grain,
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i)
                   for (std::int64_t j = 0; j < width; ++j)
                     x[i * width + j] *= weights_R[static_cast<std::size_t>(i)];
               });
}

} // namespace troupe::models
