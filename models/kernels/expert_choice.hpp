// The choice of experts by a router's logits (models/transformer/router.hpp) as
// a device computes it: it takes all logits and gives the host what it needs to
// assign tokens to experts.
//
// T tokens, E experts, k experts per token.
#pragma once

#include "models/kernels/routed_experts.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace troupe::models {

/// The choice in host memory.
struct ChosenExperts {
  std::vector<std::int32_t> experts_TK; ///< best first
  std::vector<float> weight_TK;
  std::vector<float> scores_TE; ///< of all experts, if they are kept
};

/// A choice as its gradient needs it, in host memory. S = T k slots: a token at
/// an expert, in order of expert.
struct RoutedChoice {
  std::span<const std::int32_t> experts_TK;
  std::span<const std::int64_t> slot_TK; ///< of each token's experts
  std::span<const float> weight_S;
  std::span<const float> scores_TE; ///< empty where the rule needs none
};

} // namespace troupe::models
