// The sum over the rows of a matrix, added to a vector, in an order that
// depends on the shape alone (I8): gradients of weights from the partial sums
// of blocks.
//
// C rows of H floats; one block per 32 columns.
#pragma once

#include "models/gpu/kernels/grid.hpp"

#include <cstdint>

namespace troupe::models::gpu {

struct AddRows {
  static constexpr int threads = 256;
  static constexpr int columns = 32; ///< of a block: one memory transaction
  static constexpr int groups = threads / columns;
  struct Shared {
    float part[threads];
  };

  const float* from_CH = nullptr;
  float* to_H = nullptr;  ///< added to
  std::int64_t rows = 0;  ///< C
  std::int64_t width = 0; ///< H

  static std::int64_t blocks(std::int64_t width) {
    return pieces_of(width, columns);
  }

  TROUPE_KERNEL void operator()(Block<threads> block, Shared& shared) const {
    block.each([&](int lane) {
      const std::int64_t column = block.index * columns + lane % columns;
      float total = 0;
      if (column < width)
        for (std::int64_t c = lane / columns; c < rows; c += groups)
          total += from_CH[c * width + column];
      shared.part[lane] = total;
    });
    block.each([&](int lane) {
      const std::int64_t column = block.index * columns + lane;
      if (lane >= columns || column >= width)
        return;
      float total = 0;
      for (int group = 0; group < groups; ++group)
        total += shared.part[group * columns + lane];
      to_H[column] += total;
    });
  }
};

} // namespace troupe::models::gpu
