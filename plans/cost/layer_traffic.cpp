#include "plans/cost/layer_traffic.hpp"

namespace troupe::plans {

namespace {

constexpr double fp32_bytes = 4;

} // namespace

LayerTraffic::LayerTraffic(const ModelShape& shape)
  : hidden(static_cast<double>(shape.hidden_size)),
    stream(hidden),
    queries(static_cast<double>(shape.num_heads * shape.head_dim)),
    keys(static_cast<double>(shape.num_kv_heads * shape.head_dim)),
    inner(static_cast<double>(shape.intermediate_size)),
    gates(shape.gated_mlp ? 2 : 1) {
  const auto& experts = shape.experts;
  if (!experts.exist())
    return;
  const auto chosen = static_cast<double>(experts.per_token);
  inner = chosen * static_cast<double>(experts.width)
          + static_cast<double>(experts.shared_width);
  routed = 4 * chosen * hidden; // read and written, there and back
}

LayerTraffic LayerTraffic::under(const Strategy& strategy) const {
  const double peers = strategy.tp;
  auto own = *this;
  if (strategy.sequence_parallel)
    own.stream /= peers;
  own.queries /= peers;
  own.keys /= peers;
  own.inner /= peers;
  own.routed /= peers;
  return own;
}

double LayerTraffic::products() const {
  return (hidden + queries + 2 * keys) // qkv
         + (queries + hidden)          // o
         + (hidden + gates * inner) + (inner + hidden);
}

double LayerTraffic::forward() const {
  const auto norms = 2 * 2 * stream;          // x to its norm
  const auto between = 2 * (queries + keys)   // rotation
                       + 2 * queries          // attention
                       + (gates + 1) * inner; // unit
  const auto sums = 2 * 3 * stream;           // residual streams
  return norms + products() + between + sums + routed;
}

double LayerTraffic::backward() const {
  const auto norms = 2 * 4 * stream;
  const auto between = 2 * (queries + keys) + 2 * (gates + 1) * inner
                       + (queries + 2 * keys + 2 * queries)
                       + (queries + 2 * keys);
  return 2 * products() + norms + between + 2 * routed;
}

double layer_weights(const ModelShape& shape) {
  const LayerTraffic layer(shape);
  const auto& experts = shape.experts;
  const auto width = experts.exist() ? static_cast<double>(
                       experts.count * experts.width + experts.shared_width)
                                     : layer.inner;
  const auto router = layer.hidden * static_cast<double>(experts.count);
  return layer.hidden * (layer.queries + 2 * layer.keys)
         + layer.queries * layer.hidden
         + (layer.gates + 1) * layer.hidden * width + router + 2 * layer.hidden;
}

double least_decode_bytes(const LayerTraffic& layer, double weights,
                          double sequences, double keys) {
  return bf16_bytes
         * (weights
            + sequences
                * (2 * keys * layer.keys + 2 * layer.keys + layer.forward()));
}

double least_forward_bytes(const LayerTraffic& layer, double weights,
                           double tokens) {
  return bf16_bytes * (weights + tokens * (layer.forward() + 2 * layer.keys));
}

double least_backward_bytes(const LayerTraffic& layer, double weights,
                            double tokens) {
  return bf16_bytes * (2 * weights + tokens * layer.backward());
}

double least_rest_bytes(double hidden, double vocab, double rows) {
  return bf16_bytes * (vocab * hidden + rows * 6 * hidden)
         + rows * vocab * 2 * fp32_bytes;
}

} // namespace troupe::plans
