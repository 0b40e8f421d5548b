// The choice of experts of aten_backend.hpp and its gradient, by kernels of our
// own: for the host, which then waits, or to stay on the device.
#include "models/gpu/aten_backend.hpp"
#include "models/gpu/kernels/choose_experts.hpp"
#include "models/gpu/kernels/join_experts.hpp"
#include "models/gpu/kernels/load_excess.hpp"
#include "models/gpu/kernels/route_backward.hpp"
#include "models/gpu/kernels/sort_experts.hpp"
#include "models/gpu/own_kernels.hpp"

#include <ATen/ATen.h>

#include <cstring>

namespace troupe::models {

namespace {

constexpr std::int64_t word_bytes = 4; ///< of a float or an int32

/// Returns whether the kernels take a choice of this size.
bool chooses(const ExpertChoice& shape) {
  return shape.chosen <= gpu::JoinExperts<float, float>::most_chosen
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

/// Runs the kernel that chooses experts.
void choose(at::Device device, const ExpertChoice& shape,
            const float* logits_TE, const float* correction_E,
            std::int32_t* experts_TK, float* weight_TK, float* scores_TE) {
  gpu::run_kernel(
    device,
    gpu::ChooseExperts{logits_TE, correction_E, gpu::choice_rule(shape.rule),
                       shape.experts, shape.chosen, experts_TK, weight_TK,
                       scores_TE},
    shape.tokens,
    {"choose_experts",
     (shape.tokens * shape.experts + 2 * shape.slots() + shape.scores())
       * word_bytes});
}

} // namespace

// The three results are one block of memory, so that the host reads once.
std::optional<ChosenExperts>
AtenBackend::choose_experts(const ExpertChoice& shape, const float* logits_TE,
                            const float* correction_E) {
  if (!options_.own_kernels || !chooses(shape))
    return std::nullopt;
  const std::int64_t slots = shape.slots();
  const std::int64_t scores = shape.scores();
  const at::Tensor found
    = at::empty({2 * slots + scores}, at::dtype(at::kFloat).device(device_));
  auto* words = found.mutable_data_ptr<float>();
  choose(device_, shape, logits_TE, correction_E,
         reinterpret_cast<std::int32_t*>(words), words + slots,
         scores > 0 ? words + 2 * slots : nullptr);
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
  const at::Tensor experts = cached(routed.experts_TK);
  const at::Tensor slots = cached(routed.slot_TK);
  const at::Tensor weights = cached(routed.weight_S);
  const at::Tensor scores
    = routed.scores_TE.empty() ? at::Tensor{} : cached(routed.scores_TE);
  gpu::run_kernel(
    device_,
    gpu::RouteBackward{
      experts.const_data_ptr<std::int32_t>(),
      slots.const_data_ptr<std::int64_t>(), weights.const_data_ptr<float>(),
      d_weight_S, scores.defined() ? scores.const_data_ptr<float>() : nullptr,
      d_logits_TE, gpu::choice_rule(shape.rule), shape.experts, shape.chosen},
    shape.tokens,
    {"route_backward",
     (5 * slots.numel() + 2 * shape.tokens * shape.experts) * word_bytes});
  return true;
}

void AtenBackend::dispatch(const float* logits_TE, const float* correction_E,
                           const DeviceRouting& to) {
  const ExpertChoice& shape = to.choice;
  choose(device_, shape, logits_TE, correction_E, to.experts_TK, to.weight_TK,
         to.scores_TE);
  gpu::run_kernel(
    device_,
    gpu::SortExperts{to.experts_TK, to.weight_TK, shape.slots(), shape.experts,
                     shape.chosen, to.rows_at_once, to.slot_TK, to.token_S,
                     to.weight_S, to.ends_CE},
    shape.experts,
    {"sort_experts",
     (6 * shape.slots() + to.pieces() * shape.experts) * word_bytes});
}

void AtenBackend::dispatch_backward(const DeviceRouting& routing,
                                    const float* d_weight_S,
                                    float* d_logits_TE) {
  const ExpertChoice& shape = routing.choice;
  gpu::run_kernel(
    device_,
    gpu::RouteBackward{routing.experts_TK, routing.slot_TK, routing.weight_S,
                       d_weight_S, routing.scores_TE, d_logits_TE,
                       gpu::choice_rule(shape.rule), shape.experts,
                       shape.chosen},
    shape.tokens,
    {"route_backward",
     (5 * shape.slots() + 2 * shape.tokens * shape.experts) * word_bytes});
}

void AtenBackend::add_load_excess(const DeviceRouting& routing,
                                  std::span<const std::int64_t> copies_T,
                                  float* out_E) {
  const ExpertChoice& shape = routing.choice;
  const at::Tensor copies = cached(copies_T);
  gpu::run_kernel(
    device_,
    gpu::LoadExcess{routing.experts_TK, copies.const_data_ptr<std::int64_t>(),
                    shape.slots(), shape.experts, shape.chosen, out_E},
    1,
    {"load_excess",
     (shape.slots() + 2 * shape.tokens + 2 * shape.experts) * word_bytes});
}

} // namespace troupe::models
