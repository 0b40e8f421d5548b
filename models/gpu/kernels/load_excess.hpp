// The load of each expert times their number, minus the load of all, as the
// router's on the host (models/transformer/router.hpp): sums of integers, so
// that their order does not matter.
//
// T tokens, E experts, k experts per token, S = T k slots; one block.
#pragma once

#include "models/gpu/kernels/choose_experts.hpp"
#include "models/gpu/kernels/grid.hpp"

#include <cstdint>

namespace troupe::models::gpu {

struct LoadExcess {
  static constexpr int threads = 256;
  struct Shared {
    std::uint64_t load[ChooseExperts::most_experts];
    std::uint64_t all;
  };

  const std::int32_t* experts_TK = nullptr;
  const std::int64_t* copies_T = nullptr; ///< how often each token counts
  std::int64_t slots = 0;                 ///< S
  std::int64_t experts = 0;               ///< E
  std::int64_t chosen = 0;                ///< k
  float* out_E = nullptr;                 ///< added to

  TROUPE_KERNEL void operator()(Block<threads> block, Shared& shared) const {
    block.each([&](int lane) {
      for (std::int64_t e = lane; e < experts; e += threads)
        shared.load[e] = 0;
      if (lane == 0)
        shared.all = 0;
    });
    block.each([&](int lane) {
      std::uint64_t all = 0;
      for (std::int64_t i = lane; i < slots; i += threads) {
        const auto copies = static_cast<std::uint64_t>(copies_T[i / chosen]);
        add_shared(shared.load + experts_TK[i], copies);
        all += copies;
      }
      add_shared(&shared.all, all);
    });
    block.each([&](int lane) {
      const auto all = static_cast<std::int64_t>(shared.all);
      for (std::int64_t e = lane; e < experts; e += threads)
        out_E[e] += static_cast<float>(
          static_cast<std::int64_t>(shared.load[e]) * experts - all);
    });
  }
};

} // namespace troupe::models::gpu
