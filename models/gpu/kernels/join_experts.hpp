// Rows that the experts of a token computed, or gradients of their inputs,
// added to the token's row: in order of slot, to a sum in fp32 that is rounded
// once, as ScatterRows adds the rows of a list that the host has (I8).
//
// T tokens, k experts per token, S slots of which [begin, end) are here, H
// elements of a row; one block per token.
#pragma once

#include "models/gpu/kernels/grid.hpp"
#include "models/gpu/kernels/storage.hpp"

#include <cstdint>

namespace troupe::models::gpu {

template <class From, class To>
struct JoinExperts {
  static constexpr int threads = 256;
  static constexpr std::int64_t most_chosen = 128;
  struct Shared {
    std::int64_t slot[most_chosen]; ///< of the token's experts, rising
  };

  const From* from = nullptr; ///< [end - begin, H]
  To* to_TH = nullptr;
  const std::int64_t* slot_TK = nullptr;
  const float* weight_S = nullptr; ///< null: 1 each
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t chosen = 0; ///< k
  std::int64_t width = 0;  ///< H

  TROUPE_KERNEL void operator()(Block<threads> block, Shared& shared) const {
    const std::int64_t* slots = slot_TK + block.index * chosen;
    block.each([&](int lane) {
      if (lane >= chosen)
        return;
      std::int64_t smaller = 0;
      for (std::int64_t i = 0; i < chosen; ++i)
        smaller += slots[i] < slots[lane] ? 1 : 0;
      shared.slot[smaller] = slots[lane];
    });
    To* row = to_TH + block.index * width;
    block.each([&](int lane) {
      for (std::int64_t j = lane; j < width; j += threads) {
        float total = to_float(row[j]);
        for (std::int64_t i = 0; i < chosen; ++i) {
          const std::int64_t slot = shared.slot[i];
          if (slot < begin || slot >= end)
            continue;
          const float weight = weight_S == nullptr ? 1.0F : weight_S[slot];
          total += weight * to_float(from[(slot - begin) * width + j]);
        }
        store(row + j, total);
      }
    });
  }
};

} // namespace troupe::models::gpu
