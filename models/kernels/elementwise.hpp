// Moving, adding and filling floats with the host's threads: whole blocks,
// boxes within them, and listed rows of a matrix.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace troupe::models {

/// Sets all of x to `value`.
void fill_floats(float* x, std::int64_t count, float value);
/// Copies from to to; does nothing if they are the same block.
void copy_floats(const float* from, float* to, std::int64_t count);
/// Computes to = a + b.
void add_floats(const float* a, const float* b, float* to, std::int64_t count);
/// Computes x = factor * x.
void scale_floats(float* x, std::int64_t count, float factor);

/// A box of floats in two buffers; its last dimension is contiguous.
struct BoxCopy {
  std::array<std::int64_t, 4> sizes = {1, 1, 1, 1};
  std::array<std::int64_t, 3> from_strides = {0, 0, 0};
  std::array<std::int64_t, 3> to_strides = {0, 0, 0};
};
void copy_box(const BoxCopy& box, const float* from, float* to);

/// Rows of a matrix [*, width]; a negative number means no row.
struct RowList {
  std::span<const std::int64_t> rows;
  std::int64_t width = 0;
  float factor = 1;
  std::span<const float> weights = {}; ///< of scatter_rows; empty: 1 each
};
/// Computes to[i] = factor * from[rows[i]], zeros where there is no row.
void gather_rows(const RowList& list, const float* from, float* to);
/// Computes to[i] += from[rows[i]].
void add_rows(const RowList& list, const float* from, float* to);
/// Computes to[rows[i]] += factor * weights[i] * from[i]; repeated rows add up
/// in the list's order.
void scatter_rows(const RowList& list, const float* from, float* to);

/// Rows of a matrix [rows, width] without gaps.
struct WholeRows {
  std::int64_t rows = 0;
  std::int64_t width = 0;
};
/// Computes the products dots[i] = sum over j of a[i, j] * b[i, j].
void row_dots(const WholeRows& shape, const float* a, const float* b,
              float* dots_R);
/// Computes x[i, j] *= weights[i].
void scale_rows(std::span<const float> weights_R, std::int64_t width, float* x);

} // namespace troupe::models
