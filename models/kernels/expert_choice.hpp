// The choice of experts by a router's logits (models/transformer/router.hpp) as
// a device computes it: it takes all logits and gives the host what it needs to
// assign tokens to experts.
//
// T tokens, E experts, k experts per token.
#pragma once

#include "config/base/error.hpp"
#include "models/kernels/grouped_product.hpp"
#include "models/kernels/routed_experts.hpp"

#include <cstdint>
#include <optional>
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

  /// Returns whether the device dispatches tokens to these experts by itself;
  /// if not, it has none of the following kernels for them.
  virtual bool dispatches(const ExpertChoice& /*choice*/,
                          const RoutedExperts& /*experts*/) const {
    return false;
  }
  /// Chooses the experts of each token by logits, and fills the routing.
  virtual void dispatch(const float* /*logits_TE*/,
                        const float* /*correction_E*/,
                        const DeviceRouting& /*to*/) {
    TROUPE_CHECK(false, "the host dispatches tokens");
  }
  /// Adds weight * expert(x) of each slot to out[token]. Keeps gate and up [S,
  /// 2I] of all slots unless `gate_up` is null.
  virtual void experts_forward(const RoutedExperts& /*experts*/,
                               const DeviceRouting& /*routing*/,
                               ConstTypedPtr /*x_TH*/, TypedPtr /*gate_up_SX*/,
                               TypedPtr /*out_TH*/) {
    TROUPE_CHECK(false, "the host dispatches tokens");
  }
  /// Adds to the experts' gradients and to dx, and sets d_weight_S; consumes
  /// gate and up.
  virtual void experts_backward(const RoutedExperts& /*experts*/,
                                const DeviceRouting& /*routing*/,
                                ConstTypedPtr /*x_TH*/, TypedPtr /*gate_up_SX*/,
                                ConstTypedPtr /*dy_TH*/,
                                const RoutedGrads& /*grads*/,
                                float* /*d_weight_S*/, TypedPtr /*dx_TH*/) {
    TROUPE_CHECK(false, "the host dispatches tokens");
  }
  /// Computes the gradient of the router's logits from that of slots' weights.
  virtual void dispatch_backward(const DeviceRouting& /*routing*/,
                                 const float* /*d_weight_S*/,
                                 float* /*d_logits_TE*/) {
    TROUPE_CHECK(false, "the host dispatches tokens");
  }
  /// Adds the load excess of each expert (models/transformer/router.hpp).
  virtual void add_load_excess(const DeviceRouting& /*routing*/,
                               std::span<const std::int64_t> /*copies_T*/,
                               float* /*out_E*/) {
    TROUPE_CHECK(false, "the host dispatches tokens");
  }
};

} // namespace troupe::models
