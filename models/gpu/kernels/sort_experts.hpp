// Slots in order of expert, and of token within one, from the experts of each
// token (models/kernels/routed_experts.hpp): a counting sort of integers, so
// that the order is the same every time (I8), without atomics. Each block finds
// the slots of one expert: it counts those of experts before its own, and its
// own by lane, then places these.
//
// T tokens, E experts, k experts per token, S = T k slots, C pieces; one block
// per expert.
#pragma once

#include "models/gpu/kernels/grid.hpp"

#include <cstdint>

namespace troupe::models::gpu {

struct SortExperts {
  static constexpr int threads = 256;
  struct Shared {
    std::int64_t before[threads]; ///< of experts before this one
    std::int64_t own[threads];    ///< of this one, up to each lane's last
  };

  const std::int32_t* experts_TK = nullptr;
  const float* weight_TK = nullptr;
  std::int64_t slots = 0;   ///< S
  std::int64_t experts = 0; ///< E
  std::int64_t chosen = 0;  ///< k
  std::int64_t rows_at_once = 1;
  std::int64_t* slot_TK = nullptr;
  std::int32_t* token_S = nullptr;
  float* weight_S = nullptr;
  std::int32_t* ends_CE = nullptr; ///< of the expert's slots in each piece

  TROUPE_KERNEL void operator()(Block<threads> block, Shared& shared) const {
    const std::int64_t expert = block.index;
    const std::int64_t share = pieces_of(slots, threads); // of a lane
    block.each([&](int lane) {
      std::int64_t before = 0;
      std::int64_t own = 0;
      for (std::int64_t i = lane * share; i < end_of(lane, share); ++i) {
        before += experts_TK[i] < expert ? 1 : 0;
        own += experts_TK[i] == expert ? 1 : 0;
      }
      shared.before[lane] = before;
      shared.own[lane] = own;
    });
    sum(block, shared.before);
    add_up(block, shared);
    block.each([&](int lane) {
      std::int64_t slot
        = shared.before[0] + (lane == 0 ? 0 : shared.own[lane - 1]);
      for (std::int64_t i = lane * share; i < end_of(lane, share); ++i)
        if (experts_TK[i] == expert)
          place(i, slot++);
      const std::int64_t end = shared.before[0] + shared.own[threads - 1];
      for (std::int64_t c = lane; c < pieces_of(slots, rows_at_once);
           c += threads) {
        const std::int64_t in_piece = end - c * rows_at_once;
        const std::int64_t most
          = in_piece < rows_at_once ? in_piece : rows_at_once;
        ends_CE[c * experts + expert]
          = static_cast<std::int32_t>(most < 0 ? 0 : most);
      }
    });
  }

private:
  TROUPE_KERNEL std::int64_t end_of(int lane, std::int64_t share) const {
    const std::int64_t end = (lane + 1) * share;
    return end < slots ? end : slots;
  }

  /// Turns each lane's count into the sum up to it.
  TROUPE_KERNEL void add_up(Block<threads> block, Shared& shared) const {
    Lane<std::int64_t, threads> left;
    for (int step = 1; step < threads; step *= 2) {
      block.each([&](int lane) {
        left[lane] = lane < step ? 0 : shared.own[lane - step];
      });
      block.each([&](int lane) { shared.own[lane] += left[lane]; });
    }
  }

  TROUPE_KERNEL void place(std::int64_t i, std::int64_t slot) const {
    slot_TK[i] = slot;
    token_S[slot] = static_cast<std::int32_t>(i / chosen);
    weight_S[slot] = weight_TK[i];
  }
};

} // namespace troupe::models::gpu
