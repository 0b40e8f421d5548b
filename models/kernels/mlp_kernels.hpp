// Units of MLPs, and the choice of experts and the experts of a layer where a
// device computes them by itself. A part of backend.hpp.
#pragma once

#include "config/base/error.hpp"
#include "models/kernels/expert_choice.hpp"
#include "models/kernels/mlp.hpp"
#include "models/kernels/routed_experts.hpp"
#include "models/kernels/typed_ptr.hpp"

#include <cstdint>
#include <optional>
#include <span>

namespace troupe::models {

class MlpKernels {
public:
  virtual ~MlpKernels() = default;

  virtual void mlp_unit(const MlpShape& shape, ConstTypedPtr in, TypedPtr act)
    = 0;
  virtual void mlp_unit_backward(const MlpShape& shape, TypedPtr in,
                                 TypedPtr d_act)
    = 0;

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
