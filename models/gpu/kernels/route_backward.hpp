// The gradient of a router's logits from that of the chosen experts' weights,
// as the router's on the host (models/transformer/router.hpp, which has the
// formulas), so that the host need not read the one and write the other.
//
// T tokens, E experts, k experts per token, S = T k slots; one block per token.
#pragma once

#include "models/gpu/kernels/choose_experts.hpp"
#include "models/gpu/kernels/grid.hpp"

#include <cstdint>

namespace troupe::models::gpu {

struct RouteBackward {
  static constexpr int threads = 128;
  struct Shared {
    float part[threads];
    float mean;
    float total;
  };

  const std::int32_t* experts_TK = nullptr;
  const std::int64_t* slot_TK = nullptr;
  const float* weight_S = nullptr;
  const float* d_weight_S = nullptr;
  const float* score_TE = nullptr; ///< null where the rule needs none
  float* d_logits_TE = nullptr;    ///< overwritten
  ChoiceRule rule;
  std::int64_t experts = 0; ///< E
  std::int64_t chosen = 0;  ///< k, at most `threads`

  TROUPE_KERNEL void operator()(Block<threads> block, Shared& shared) const {
    float* d_logits = d_logits_TE + block.index * experts;
    block.each([&](int lane) {
      for (std::int64_t e = lane; e < experts; e += threads)
        d_logits[e] = 0;
      if (lane == 0)
        add_up(block.index, shared);
    });
    block.each([&](int lane) {
      if (lane >= chosen)
        return;
      const std::int64_t at = block.index * chosen + lane;
      const std::int64_t slot = slot_TK[at];
      const float d = d_weight_S[slot] - shared.mean;
      d_logits[experts_TK[at]]
        = rule.by_logits ? weight_S[slot] * d : rule.scale / shared.total * d;
    });
    if (rule.by_logits)
      return;
    const float* scores = score_TE + block.index * experts;
    block.each([&](int lane) {
      float dot = 0;
      for (std::int64_t e = lane; e < experts; e += threads)
        dot += scores[e] * d_logits[e];
      shared.part[lane] = dot;
    });
    sum(block, shared.part);
    block.each([&](int lane) {
      for (std::int64_t e = lane; e < experts; e += threads)
        d_logits[e] = rule.is_sigmoid
                        ? scores[e] * (1.0F - scores[e]) * d_logits[e]
                        : scores[e] * (d_logits[e] - shared.part[0]);
    });
  }

private:
  /// Adds up a token's weighted gradients, and its experts' scores.
  TROUPE_KERNEL void add_up(std::int64_t token, Shared& shared) const {
    shared.mean = 0;
    shared.total = 1;
    if (!rule.renormalized)
      return;
    shared.total = 1e-20F; // as the router's least_sum
    for (std::int64_t i = token * chosen; i < (token + 1) * chosen; ++i) {
      const std::int64_t slot = slot_TK[i];
      shared.mean += weight_S[slot] / rule.scale * d_weight_S[slot];
      if (!rule.by_logits)
        shared.total += score_TE[token * experts + experts_TK[i]];
    }
  }
};

} // namespace troupe::models::gpu
