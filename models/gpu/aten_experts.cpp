// The choice of experts of aten_backend.hpp and its gradient, by kernels of our
// own.
#include "models/gpu/aten_backend.hpp"
#include "models/gpu/kernels/choose_experts.hpp"
#include "models/gpu/kernels/route_backward.hpp"
#include "models/gpu/own_kernels.hpp"

#include <ATen/ATen.h>

#include <cstring>

namespace troupe::models {

namespace {

bool chooses(const ExpertChoice& shape) {
  return shape.chosen <= gpu::RouteBackward::threads
         && shape.experts <= gpu::ChooseExperts::most_experts
         && shape.rule.groups <= gpu::ChooseExperts::most_groups;
}

/// Copies numbers from a block of words to the end of a vector.
template <class T>
const float* take_words(const float* from, std::int64_t count,
                        std::vector<T>& to) {
  static_assert(sizeof(T) == sizeof(float));
  to.resize(static_cast<std::size_t>(count));
  std::memcpy(to.data(), from, to.size() * sizeof(T));
  return from + count;
}

} // namespace

// The three results are one block of memory, so that the host reads once.
std::optional<ChosenExperts>
AtenBackend::choose_experts(const ExpertChoice& shape, const float* logits_TE,
                            const float* correction_E) {
  if (!options_.own_kernels || !chooses(shape))
    return std::nullopt;
  const std::int64_t slots = shape.tokens * shape.chosen;
  const std::int64_t scores
    = shape.keeps_scores ? shape.tokens * shape.experts : 0;
  const at::Tensor found
    = at::empty({2 * slots + scores}, at::dtype(at::kFloat).device(device_));
  auto* words = found.mutable_data_ptr<float>();
  gpu::run_kernel(
    device_,
    gpu::ChooseExperts{logits_TE, correction_E, gpu::choice_rule(shape.rule),
                       shape.experts, shape.chosen,
                       reinterpret_cast<std::int32_t*>(words), words + slots,
                       scores > 0 ? words + 2 * slots : nullptr},
    shape.tokens,
    {"choose_experts", (shape.tokens * shape.experts + found.numel())
                         * static_cast<std::int64_t>(sizeof(float))});
  const at::Tensor of_host = found.to(at::kCPU);
  ChosenExperts chosen;
  const float* next = of_host.const_data_ptr<float>();
  next = take_words(next, slots, chosen.experts_TK);
  next = take_words(next, slots, chosen.weight_TK);
  take_words(next, scores, chosen.scores_TE);
  return chosen;
}

bool AtenBackend::choice_backward(const ExpertChoice& shape,
                                  const RoutedChoice& routed,
                                  const float* d_weight_S, float* d_logits_TE) {
  if (!options_.own_kernels || !chooses(shape))
    return false;
  const at::Tensor experts = tables_.of(routed.experts_TK, device_);
  const at::Tensor slots = tables_.of(routed.slot_TK, device_);
  const at::Tensor weights = tables_.of(routed.weight_S, device_);
  const at::Tensor scores = routed.scores_TE.empty()
                              ? at::Tensor{}
                              : tables_.of(routed.scores_TE, device_);
  gpu::run_kernel(
    device_,
    gpu::RouteBackward{
      experts.const_data_ptr<std::int32_t>(),
      slots.const_data_ptr<std::int64_t>(), weights.const_data_ptr<float>(),
      d_weight_S, scores.defined() ? scores.const_data_ptr<float>() : nullptr,
      d_logits_TE, gpu::choice_rule(shape.rule), shape.experts, shape.chosen},
    shape.tokens,
    {"route_backward", (5 * slots.numel() + 2 * shape.tokens * shape.experts)
                         * static_cast<std::int64_t>(sizeof(float))});
  return true;
}

} // namespace troupe::models
