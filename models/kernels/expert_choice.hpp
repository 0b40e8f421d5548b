// The choice of experts by a router's logits (models/transformer/router.hpp) as
// a device computes it: it takes all logits and gives the host what it needs to
// assign tokens to experts.
//
// T tokens, E experts, k experts per token.
#pragma once

#include "config/model/expert_shape.hpp"

#include <cstdint>
#include <vector>

namespace troupe::models {

struct ExpertChoice {
  std::int64_t tokens = 0;  ///< T
  std::int64_t experts = 0; ///< E
  std::int64_t chosen = 0;  ///< k
  RouterRule rule;
  bool keeps_scores = false;
};

/// The choice in host memory.
struct ChosenExperts {
  std::vector<std::int32_t> experts_TK; ///< best first
  std::vector<float> weight_TK;
  std::vector<float> scores_TE; ///< of all experts, if they are kept
};

} // namespace troupe::models
