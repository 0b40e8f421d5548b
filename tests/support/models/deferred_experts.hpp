// Experts of deferred_backend.hpp: tokens are dispatched when kernels run, by
// the host's router and products, from and to the tables that a device has.
#pragma once

#include "models/kernels/backend.hpp"
#include "models/kernels/workspace.hpp"

#include <functional>
#include <span>

namespace troupe::testing {

class DeferredExperts : public models::Backend {
public:
  bool dispatches(const models::ExpertChoice& choice,
                  const models::RoutedExperts& experts) const override;
  void dispatch(const float* logits_TE, const float* correction_E,
                const models::DeviceRouting& to) override;
  void experts_forward(const models::RoutedExperts& experts,
                       const models::DeviceRouting& routing,
                       models::ConstTypedPtr x_TH, models::TypedPtr gate_up_SX,
                       models::TypedPtr out_TH) override;
  void experts_backward(const models::RoutedExperts& experts,
                        const models::DeviceRouting& routing,
                        models::ConstTypedPtr x_TH, models::TypedPtr gate_up_SX,
                        models::ConstTypedPtr dy_TH,
                        const models::RoutedGrads& grads, float* d_weight_S,
                        models::TypedPtr dx_TH) override;
  void dispatch_backward(const models::DeviceRouting& routing,
                         const float* d_weight_S, float* d_logits_TE) override;
  void add_load_excess(const models::DeviceRouting& routing,
                       std::span<const std::int64_t> copies_T,
                       float* out_E) override;

protected:
  explicit DeferredExperts(models::Backend& inner) : inner_(inner) {}
  virtual void later(std::function<void()> kernel) = 0;
  /// Defers kernels with host tables, which differ from call to call.
  virtual void later_with_tables(std::function<void()> kernel) = 0;

  models::Backend& inner_;
  models::Workspace scratch_; ///< scratch memory of kernels when they run
};

} // namespace troupe::testing
