// Moving, adding and clearing floats over the host's threads: whole blocks,
// boxes inside of them, and rows of a matrix that a list names.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace troupe::models {

/// x becomes `value` everywhere.
void fill_floats(float* x, std::int64_t count, float value);
/// to = from; the same block is no work.
void copy_floats(const float* from, float* to, std::int64_t count);
/// to = a + b.
void add_floats(const float* a, const float* b, float* to, std::int64_t count);

/// A box of floats in two places; the last dimension lies together.
struct BoxCopy {
  std::array<std::int64_t, 4> sizes = {1, 1, 1, 1};
  std::array<std::int64_t, 3> from_strides = {0, 0, 0};
  std::array<std::int64_t, 3> to_strides = {0, 0, 0};
};
void copy_box(const BoxCopy& box, const float* from, float* to);

/// Rows of a matrix [*, width]; a negative number names none.
struct RowList {
  std::span<const std::int64_t> rows;
  std::int64_t width = 0;
  float factor = 1;
};
/// to[i] = factor * from[rows[i]], zeros where there is none.
void gather_rows(const RowList& list, const float* from, float* to);
/// to[i] += from[rows[i]].
void add_rows(const RowList& list, const float* from, float* to);
/// to[rows[i]] += factor * from[i], rows that are named twice in the list's
/// order.
void scatter_rows(const RowList& list, const float* from, float* to);

} // namespace troupe::models
