// Rows that are added to rows of another matrix, each times its weight: tokens
// that come back from their experts, gradients of gathered rows. All that go to
// one row are added by one block, in the order in which they are listed, to a
// sum in fp32 that is rounded once (I8).
//
// D rows that are added to, N rows that are added, H elements each; one block
// per row that is added to.
#pragma once

#include "models/gpu/kernels/grid.hpp"
#include "models/gpu/kernels/storage.hpp"

#include <cstdint>

namespace troupe::models::gpu {

template <class From, class To>
struct ScatterRows {
  static constexpr int threads = 256;
  struct Shared {};

  const From* from_NH = nullptr;
  To* to = nullptr;
  /// [D+1] where each row's list begins, [D] the row, [N] what is added to it.
  const std::int64_t* lists = nullptr;
  const float* weight_N = nullptr; ///< null: 1 each
  float factor = 1;
  std::int64_t targets = 0; ///< D
  std::int64_t width = 0;   ///< H

  TROUPE_KERNEL void operator()(Block<threads> block, Shared&) const {
    const std::int64_t* begin = lists + block.index;
    const std::int64_t* added = lists + 2 * targets + 1;
    To* row = to + begin[targets + 1] * width;
    block.each([&](int lane) {
      for (std::int64_t j = lane; j < width; j += threads) {
        float total = to_float(row[j]);
        for (std::int64_t i = begin[0]; i < begin[1]; ++i) {
          const std::int64_t n = added[i];
          const float weight
            = weight_N == nullptr ? factor : factor * weight_N[n];
          total += weight * to_float(from_NH[n * width + j]);
        }
        store(row + j, total);
      }
    });
  }
};

} // namespace troupe::models::gpu
