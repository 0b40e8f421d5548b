#include "plans/cost/model_work.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace troupe::plans::internal {

namespace {

/// Share of a layer's launches that its MLP makes: 5 of 20.
constexpr double mlp_launch_share = 0.25;

} // namespace

ModelWork::ModelWork(const ModelShape& shape, DType products,
                     const StoredTypes& stored)
  : layers(static_cast<double>(shape.num_layers)),
    hidden(static_cast<double>(shape.hidden_size)),
    kv_width(static_cast<double>(shape.num_kv_heads * shape.head_dim)),
    attention_width(static_cast<double>(shape.num_heads * shape.head_dim)),
    parameters(static_cast<double>(num_parameters(shape))),
    head_width(shape.scalar_head ? 0 : static_cast<double>(shape.vocab_size)),
    traffic(shape),
    bytes{.weight = static_cast<double>(size_bytes(stored.weights)),
          .gathered = static_cast<double>(size_bytes(stored.gathered)),
          .factor = static_cast<double>(size_bytes(products)),
          .activation = static_cast<double>(size_bytes(stored.activations)),
          .cache = static_cast<double>(size_bytes(stored.cache)),
          .expert_row = static_cast<double>(size_bytes(stored.expert_rows))},
    units(unit_bytes(shape, stored.weights)) {
  // of the last layer: dense ones are few, and the first ones
  layer_parameters
    = units.units.at(static_cast<std::size_t>(shape.num_layers)) / bytes.weight;
  if (shape.experts.exist())
    experts = {.count = static_cast<double>(shape.experts.count),
               .per_token = static_cast<double>(shape.experts.per_token),
               .parameters = (shape.gated_mlp ? 3.0 : 2.0) * hidden
                             * static_cast<double>(shape.experts.width),
               .width = static_cast<double>(shape.experts.width)};
  trained.moved = moved_bytes(shape, stored.weights);
  const auto& moved = trained.moved.units;
  trained.parameters
    = std::accumulate(moved.begin(), moved.end(), 0.0) / bytes.weight;
  if (shape.lora.exists()) // no gradients of the weights
    trained.backward = 1;
}

double ModelWork::touched_experts(double tokens) const {
  return experts.parameters == 0
           ? 0
           : experts.count
               * (1
                  - std::pow(1 - experts.per_token / experts.count,
                             std::max(1.0, tokens)));
}

double ModelWork::used_parameters() const {
  return layer_parameters
         - (experts.count - experts.per_token) * experts.parameters;
}

double ModelWork::head_share() const {
  const auto head = head_width * hidden;
  return head / (head + layers * used_parameters());
}

double ModelWork::read_parameters(double tokens) const {
  return layer_parameters
         - (experts.count - touched_experts(tokens)) * experts.parameters;
}

double ModelWork::device_experts(double tokens,
                                 const Strategy& strategy) const {
  return touched_experts(tokens * strategy.expert_group_dp()) / strategy.ep;
}

double ModelWork::launches(double tokens, const Strategy& strategy) const {
  return 1
         + mlp_launch_share
             * std::max(0.0, device_experts(tokens, strategy) - 1);
}

} // namespace troupe::plans::internal
