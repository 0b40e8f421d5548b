// Kernels of aten_backend.hpp for layers with experts: the choice of experts,
// products of groups of rows, and all of a layer's experts at once where the
// host does not know which rows these have.
#pragma once

#include "models/gpu/aten_views.hpp"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <span>

namespace troupe::models {

class AtenExperts : public AtenViews {
public:
  void grouped_product(const GroupedShape& shape, const ConstTypedMatrix& x,
                       GroupedWeights weights, const TypedMatrix& y) override;
  void grouped_grad_x(const GroupedShape& shape, const ConstTypedMatrix& dy,
                      GroupedWeights weights, const TypedMatrix& dx) override;
  void grouped_grad_w(const GroupedShape& shape, const ConstTypedMatrix& dy,
                      const ConstTypedMatrix& x, GroupedGrads grads) override;
  std::int64_t grouped_rows_at_once() const override;
  std::optional<ChosenExperts>
  choose_experts(const ExpertChoice& shape, const float* logits_TE,
                 const float* correction_E) override;
  bool choice_backward(const ExpertChoice& shape, const RoutedChoice& routed,
                       const float* d_weight_S, float* d_logits_TE) override;

  bool dispatches(const ExpertChoice& choice,
                  const RoutedExperts& experts) const override;
  void dispatch(const float* logits_TE, const float* correction_E,
                const DeviceRouting& to) override;
  void experts_forward(const RoutedExperts& experts,
                       const DeviceRouting& routing, ConstTypedPtr x_TH,
                       TypedPtr gate_up_SX, TypedPtr out_TH) override;
  void experts_backward(const RoutedExperts& experts,
                        const DeviceRouting& routing, ConstTypedPtr x_TH,
                        TypedPtr gate_up_SX, ConstTypedPtr dy_TH,
                        const RoutedGrads& grads, float* d_weight_S,
                        TypedPtr dx_TH) override;
  void dispatch_backward(const DeviceRouting& routing, const float* d_weight_S,
                         float* d_logits_TE) override;
  void add_load_excess(const DeviceRouting& routing,
                       std::span<const std::int64_t> copies_T,
                       float* out_E) override;

protected:
  using AtenViews::AtenViews;

private:
  /// Runs the kernel that chooses experts.
  void choose(const ExpertChoice& shape, const float* logits_TE,
              const float* correction_E, std::int32_t* experts_TK,
              float* weight_TK, float* scores_TE) const;
  /// Returns int32 numbers of the device.
  at::Tensor view_of_ints(const std::int32_t* data, std::int64_t count) const;
  /// Adds rows [rows, H] of a piece to those of their tokens.
  void join(const DeviceRouting& routing, std::int64_t piece,
            const float* weight_S, const at::Tensor& from_RH,
            TypedPtr to_TH) const;
  /// Overwrites gate and up, d_act and dy of a piece as the kernel does.
  void unit_backward(const RoutedExperts& experts, const DeviceRouting& routing,
                     std::int64_t piece, const at::Tensor& gate_up,
                     const at::Tensor& d_act, const at::Tensor& dy,
                     float* d_weight_S) const;
  /// Adds dy^T x of each group to its gradient [out, in].
  void add_grads(const at::Tensor& dy, const at::Tensor& x,
                 const at::Tensor& ends, GroupedGrads grads) const;
};

} // namespace troupe::models
