#include "models/transformer/device_dispatch.hpp"

#include "models/kernels/backend.hpp"
#include "models/kernels/typed_tensor.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace troupe::models {

namespace {

float* floats_of(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.mutable_data_ptr<float>() : nullptr;
}

/// Returns how many words of a routing the host needs: its experts, or, with
/// scores, their weights and the scores, which lie after them.
std::int64_t words_read(const ExpertChoice& choice) {
  return choice.keeps_scores ? 2 * choice.slots() + choice.scores()
                             : choice.slots();
}

/// Moves `count` words of a block to a vector.
template <class T>
void move_words(const float*& from, std::int64_t count, std::vector<T>& to) {
  static_assert(sizeof(T) == sizeof(float));
  to.resize(static_cast<std::size_t>(count));
  std::memcpy(to.data(), from, to.size() * sizeof(T));
  from += count;
}

/// Fills a routing with what was read of it.
void take_choice(const float*& from, const ExpertChoice& choice,
                 Routing& routing) {
  if (!choice.keeps_scores) {
    move_words(from, choice.slots(), routing.chosen_TK);
    routing.mismatched_T.assign(static_cast<std::size_t>(choice.tokens), -1);
    return;
  }
  ChosenExperts chosen;
  move_words(from, choice.slots(), chosen.experts_TK);
  move_words(from, choice.slots(), chosen.weight_TK);
  move_words(from, choice.scores(), chosen.scores_TE);
  routing = routing_of({.tokens = choice.tokens,
                        .experts = choice.experts,
                        .chosen = choice.chosen,
                        .rule = choice.rule,
                        .keeps_scores = true},
                       std::move(chosen));
}

} // namespace

ExpertPlaces::ExpertPlaces(const std::vector<ExpertWeights>& experts) {
  for (const ExpertWeights& expert : experts) {
    gate_up.push_back(numbers_of(expert.gate_up));
    down.push_back(numbers_of(expert.down));
  }
}

RoutedExperts experts_at(const MoeShape& shape, const ExpertPlaces& places) {
  return {.hidden = shape.hidden,
          .unit = shape.unit,
          .operands = shape.operands,
          .storage = shape.storage,
          .gate_up = places.gate_up,
          .down = places.down};
}

bool dispatches(const MoeShape& shape, const MoeWeights& weights) {
  const bool all_here = !shape.peers.exist() && weights.first_expert == 0
                        && std::ssize(weights.experts) == shape.router.experts;
  if (!all_here || shape.router.replayed.first != nullptr)
    return false;
  const ExpertPlaces places(weights.experts);
  return shape.backend->dispatches(choice_of(shape.router),
                                   experts_at(shape, places));
}

void dispatch(const MoeShape& shape, const at::Tensor& correction_E,
              const float* logits_TE, RoutedTokens& routed) {
  Backend& backend = *shape.backend;
  const ExpertChoice choice = choice_of(shape.router);
  const std::int64_t at_once = std::max(
    {std::int64_t{1}, choice.tokens, backend.grouped_rows_at_once()});
  if (!routed.on_device)
    routed.on_device.emplace(AlignedFloats(backend.memory()));
  DispatchedTokens& tokens = *routed.on_device;
  tokens.routing = DeviceRouting::in(
    tokens.block.reserve(DeviceRouting::floats(choice, at_once)), choice,
    at_once);
  backend.dispatch(logits_TE, numbers_of(correction_E).floats(),
                   tokens.routing);
}

void forward_on_device(const MoeShape& shape, const MoeWeights& weights,
                       ConstTypedPtr x_TH, const RoutedTokens& routed,
                       TypedPtr out_TH) {
  const ExpertPlaces places(weights.experts);
  shape.backend->experts_forward(experts_at(shape, places),
                                 routed.on_device->routing, x_TH,
                                 routed.gate_up_RX, out_TH);
}

void backward_on_device(const MoeShape& shape, const MoeWeights& weights,
                        ConstTypedPtr x_TH, const RoutedTokens& routed,
                        ConstTypedPtr dy_TH, const MoeWeights& grads,
                        float* d_weight_S, TypedPtr dx_TH) {
  const ExpertPlaces places(weights.experts);
  std::vector<float*> gate_up;
  std::vector<float*> down;
  for (const ExpertWeights& expert : grads.experts) {
    gate_up.push_back(floats_of(expert.gate_up));
    down.push_back(floats_of(expert.down));
  }
  shape.backend->experts_backward(
    experts_at(shape, places), routed.on_device->routing, x_TH,
    routed.gate_up_RX, dy_TH, {gate_up, down}, d_weight_S, dx_TH);
}

void moe_add_load_excess(const MoeShape& shape, const RoutedTokens& routed,
                         std::span<const std::int64_t> copies_T, float* out_E) {
  if (routed.on_device)
    return shape.backend->add_load_excess(routed.on_device->routing, copies_T,
                                          out_E);
  const auto loads = shape.backend->change(out_E, shape.router.experts);
  add_load_excess(shape.router, routed.routing, copies_T, loads.floats());
  loads.put_back();
}

void read_choices(Backend& backend, std::span<RoutedTokens* const> layers) {
  std::vector<RoutedTokens*> unread;
  std::int64_t words = 0;
  for (RoutedTokens* layer : layers)
    if (layer->on_device && layer->routing.chosen_TK.empty()) {
      unread.push_back(layer);
      words += words_read(layer->on_device->routing.choice);
    }
  if (words == 0)
    return;
  AlignedFloats joined(backend.memory());
  float* next = joined.reserve(words);
  for (const RoutedTokens* layer : unread) {
    const DeviceRouting& routing = layer->on_device->routing;
    const std::int64_t count = words_read(routing.choice);
    backend.copy(reinterpret_cast<const float*>(routing.experts_TK), next,
                 count);
    next += count;
  }
  const auto of_host = backend.read(joined.data(), words);
  const float* from = of_host.floats();
  for (RoutedTokens* layer : unread)
    take_choice(from, layer->on_device->routing.choice, layer->routing);
}

} // namespace troupe::models
