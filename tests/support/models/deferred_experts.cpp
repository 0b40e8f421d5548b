// Experts of deferred_backend.hpp: tokens are dispatched when kernels run, by
// the host's router and products, from and to the tables that a device has.
#include "models/transformer/expert_runs.hpp"

#include <ATen/ops/from_blob.h>

#include "deferred_backend.hpp"

#include <algorithm>
#include <vector>

namespace troupe::testing {

using namespace models;

namespace {

RouterShape late_router(const ExpertChoice& choice) {
  return {.tokens = choice.tokens,
          .experts = choice.experts,
          .chosen = choice.chosen,
          .rule = choice.rule,
          .keeps_scores = choice.keeps_scores};
}

/// Writes the ends of experts in each piece.
void write_ends(const Routing& routing, const DeviceRouting& to) {
  const std::int64_t experts = to.choice.experts;
  for (std::int64_t c = 0; c < to.pieces(); ++c)
    for (std::int64_t e = 0; e < experts; ++e)
      to.ends_CE[c * experts + e] = static_cast<std::int32_t>(std::clamp(
        routing.begin_E[static_cast<std::size_t>(e) + 1] - c * to.rows_at_once,
        std::int64_t{0}, to.rows_at_once));
}

/// Returns the routing that tables of the device say.
Routing late_routing(const DeviceRouting& from) {
  const std::int64_t slots = from.choice.slots();
  Routing routing;
  routing.begin_E.push_back(0);
  for (std::int64_t e = 0; e < from.choice.experts; ++e) {
    std::int64_t end = 0;
    for (std::int64_t c = 0; c < from.pieces(); ++c)
      end += from.ends_CE[c * from.choice.experts + e];
    routing.begin_E.push_back(end);
  }
  routing.token_S.assign(from.token_S, from.token_S + slots);
  routing.weight_S.assign(from.weight_S, from.weight_S + slots);
  routing.chosen_TK.assign(from.experts_TK, from.experts_TK + slots);
  if (from.choice.keeps_scores)
    routing.scores_TE.assign(from.scores_TE,
                             from.scores_TE + from.choice.scores());
  return routing;
}

at::Tensor late_matrix(const float* numbers, std::int64_t rows,
                       std::int64_t columns) {
  return numbers == nullptr ? at::Tensor{}
                            : at::from_blob(const_cast<float*>(numbers),
                                            {rows, columns}, at::kFloat);
}

/// Experts of a layer with their pointers kept beyond the call.
struct LateExperts {
  MoeShape shape;
  std::vector<ExpertWeights> weights;

  LateExperts(const RoutedExperts& from, Backend& backend)
    : shape{.backend = &backend, .hidden = from.hidden, .unit = from.unit} {
    shape.operands = from.operands;
    shape.storage = from.storage;
    for (std::size_t e = 0; e < from.gate_up.size(); ++e)
      weights.push_back(with(from.gate_up[e].floats(), from.down[e].floats()));
  }
  std::vector<ExpertWeights> grads(const RoutedGrads& from) const {
    std::vector<ExpertWeights> found;
    for (std::size_t e = 0; e < from.gate_up.size(); ++e)
      found.push_back(with(from.gate_up[e], from.down[e]));
    return found;
  }

private:
  ExpertWeights with(const float* gate_up, const float* down) const {
    const std::int64_t width = shape.unit.width;
    return {.gate_up = late_matrix(gate_up, 2 * width, shape.hidden),
            .down = late_matrix(down, shape.hidden, width)};
  }
};

bool are_all(GroupedWeights weights) {
  return std::ranges::all_of(
    weights, [](ConstTypedPtr weight) { return static_cast<bool>(weight); });
}

} // namespace

bool DeferredBackend::dispatches(const ExpertChoice& /*choice*/,
                                 const RoutedExperts& experts) const {
  return experts.unit.gated && are_all(experts.gate_up)
         && are_all(experts.down);
}

void DeferredBackend::dispatch(const float* logits_TE,
                               const float* correction_E,
                               const DeviceRouting& to) {
  later([=] {
    const Routing routing
      = route(late_router(to.choice), logits_TE, correction_E);
    const auto slot_TK = routing.slots_of_tokens();
    std::ranges::copy(slot_TK, to.slot_TK);
    std::ranges::copy(routing.chosen_TK, to.experts_TK);
    for (std::size_t i = 0; i < slot_TK.size(); ++i)
      to.weight_TK[i] = routing.weight_S[static_cast<std::size_t>(slot_TK[i])];
    if (to.choice.keeps_scores)
      std::ranges::copy(routing.scores_TE, to.scores_TE);
    std::ranges::copy(routing.token_S, to.token_S);
    std::ranges::copy(routing.weight_S, to.weight_S);
    write_ends(routing, to);
  });
}

void DeferredBackend::experts_forward(const RoutedExperts& experts,
                                      const DeviceRouting& routing,
                                      ConstTypedPtr x_TH, TypedPtr gate_up_SX,
                                      TypedPtr out_TH) {
  later([=, this, all = LateExperts(experts, inner_)] {
    const Routing known = late_routing(routing);
    const Workspace::Mark mark = scratch_.mark();
    const TypedPtr gate_up
      = gate_up_SX
          ? gate_up_SX
          : scratch_.take(routing.choice.slots() * all.shape.unit.columns());
    run_experts(all.shape, {all.weights, known, 0, x_TH, gate_up}, out_TH,
                scratch_);
    scratch_.rewind(mark);
  });
}

void DeferredBackend::experts_backward(const RoutedExperts& experts,
                                       const DeviceRouting& routing,
                                       ConstTypedPtr x_TH, TypedPtr gate_up_SX,
                                       ConstTypedPtr dy_TH,
                                       const RoutedGrads& grads,
                                       float* d_weight_S, TypedPtr dx_TH) {
  const LateExperts all(experts, inner_);
  later([=, this, own = all.grads(grads)] {
    const Routing known = late_routing(routing);
    run_experts_backward(all.shape, {all.weights, known, 0, x_TH, gate_up_SX},
                         own, dy_TH, d_weight_S, dx_TH, scratch_);
  });
}

void DeferredBackend::dispatch_backward(const DeviceRouting& routing,
                                        const float* d_weight_S,
                                        float* d_logits_TE) {
  later([=] {
    route_backward(late_router(routing.choice), late_routing(routing),
                   d_weight_S, d_logits_TE);
  });
}

void DeferredBackend::add_load_excess(const DeviceRouting& routing,
                                      std::span<const std::int64_t> copies_T,
                                      float* out_E) {
  later_with_tables([=, copies = kept_table(copies_T)] {
    models::add_load_excess(late_router(routing.choice), late_routing(routing),
                            copies, out_E);
  });
}

} // namespace troupe::testing
