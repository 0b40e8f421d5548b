// The choice of experts by a router's logits (models/transformer/router.hpp) as
// a device computes it: it takes all logits and gives the host what it needs to
// assign tokens to experts.
//
// T tokens, E experts, k experts per token.
#pragma once

#include "config/model/expert_shape.hpp"
#include "models/kernels/grouped_product.hpp"

#include <cstdint>
#include <optional>
#include <span>
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

/// A choice as its gradient needs it, in host memory. S = T k slots: a token at
/// an expert, in order of expert.
struct RoutedChoice {
  std::span<const std::int32_t> experts_TK;
  std::span<const std::int64_t> slot_TK; ///< of each token's experts
  std::span<const float> weight_S;
  std::span<const float> scores_TE; ///< empty where the rule needs none
};

/// Kernels that layers with experts have beside those of all layers.
class ExpertKernels : public GroupedProducts {
public:
  /// Waits, and returns the experts of each token; none: the host chooses.
  virtual std::optional<ChosenExperts>
  choose_experts(const ExpertChoice& /*shape*/, const float* /*logits_TE*/,
                 const float* /*correction_E*/) {
    return std::nullopt;
  }
  /// Computes the gradient of the router's logits from that of slots' weights,
  /// and returns true; false: the host computes it.
  virtual bool choice_backward(const ExpertChoice& /*shape*/,
                               const RoutedChoice& /*routed*/,
                               const float* /*d_weight_S*/,
                               float* /*d_logits_TE*/) {
    return false;
  }
};

} // namespace troupe::models
