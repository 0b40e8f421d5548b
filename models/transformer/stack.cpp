#include "models/transformer/stack.hpp"

#include "net/collectives/all_to_all.hpp"
#include "net/collectives/channel.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::models::stack {

namespace {

std::int64_t widest_mlp(const Weights& weights) {
  std::int64_t widest = 0;
  for (const LayerWeights& w : weights.layers)
    if (w.has_mlp())
      widest = std::max(widest, w.up.size(0));
  return widest;
}

} // namespace

Sizes sizes(const Transformer& model, const PackedTokens& batch,
            const TensorPeers& peers) {
  const ModelShape& shape = model.shape;
  const std::int64_t d = shape.head_dim;
  const std::int64_t gathered
    = peers.gathered_rows(batch.num_tokens()) * shape.hidden_size;
  return {
    batch.num_tokens(),
    shape.hidden_size,
    shape.num_heads,
    shape.num_heads * d,
    shape.num_kv_heads * d,
    (shape.num_heads + 2 * shape.num_kv_heads) * d,
    {batch.num_tokens(), widest_mlp(model.weights), shape.activation,
     shape.gated_mlp},
    static_cast<float>(shape.norm_eps),
    shape.norm,
    peers.own(batch.num_tokens()),
    peers.split() ? gathered / peers.size() : gathered,
    gathered,
    {model.weights.operands, model.backend->storage(model.weights.operands)}};
}

double stated_score_scale(const ModelShape& shape) {
  if (shape.multipliers.attention > 0)
    return shape.multipliers.attention;
  return shape.multipliers.query_scalar > 0
           ? 1.0 / std::sqrt(shape.multipliers.query_scalar)
           : 0;
}

AttentionShape attention_shape(const Transformer& model, const LayerWeights& w,
                               const PackedTokens& batch) {
  const ModelShape& shape = model.shape;
  return {shape.num_heads,
          shape.num_kv_heads,
          shape.head_dim,
          batch.cu_seqlens,
          batch.continues,
          static_cast<float>(stated_score_scale(shape)),
          static_cast<float>(shape.caps.scores),
          w.positions.window,
          model.weights.operands};
}

PieceShape piece_shape(const Transformer& model, const LayerWeights& w,
                       const PackedTokens& batch) {
  AttentionShape heads = attention_shape(model, w, batch);
  heads.cu_seqlens = {};
  return {heads, batch.context->pieces, batch.num_tokens(),
          batch.context->keys()};
}

namespace {

// Ranks of the group have the experts of tp ranks by turns.
ExpertPeers expert_peers(const MoeWeights& experts, const TensorPeers& peers) {
  net::AllToAll* group = peers.expert_group();
  if (group == nullptr)
    return {};
  const auto count = static_cast<std::int64_t>(experts.experts.size());
  const std::int64_t stride = count * peers.size();
  return {group, experts.first_expert - stride * group->rank(), stride, count};
}

} // namespace

MoeShape moe_shape(const Transformer& model, const MoeWeights& experts,
                   const PackedTokens& batch, const Sizes& z,
                   const TensorPeers& peers) {
  const ModelShape& shape = model.shape;
  const std::int64_t chosen = shape.experts.per_token;
  ReplayedExperts replayed;
  if (!batch.experts_TW.empty())
    replayed = {batch.experts_TW.data() + experts.ordinal * chosen,
                static_cast<std::int64_t>(batch.experts_TW.size()) / z.tokens};
  MlpShape unit = z.widest;
  unit.width = experts.experts.front().up.size(0);
  const RouterShape router{.tokens = z.tokens,
                           .experts = shape.experts.count,
                           .chosen = chosen,
                           .rule = shape.experts.router,
                           .replayed = replayed,
                           .keeps_scores = batch.balance_weight > 0};
  return {model.backend,
          z.hidden,
          router,
          unit,
          z.types.operands,
          z.types.storage,
          expert_peers(experts, peers)};
}

std::array<QkNorm, 2> qk_norms(const LayerWeights& w, const ModelShape& shape,
                               const Sizes& z) {
  const auto of = [&](std::int64_t heads) {
    return shape.qk_norm == QkNormScope::all_heads
             ? QkNormShape{z.tokens, z.qkv, 1, heads * shape.head_dim,
                           z.eps,    z.norm}
             : QkNormShape{z.tokens,       z.qkv, heads,
                           shape.head_dim, z.eps, z.norm};
  };
  return {QkNorm{of(shape.num_heads), w.qk_norms.q, 0, 0},
          QkNorm{of(shape.num_kv_heads), w.qk_norms.k, z.context,
                 z.tokens * z.context}};
}

std::vector<Piece> qkv_pieces(const LayerWeights& w, const Sizes& z) {
  if (w.qkv.defined())
    return {{w.qkv, {}, 0}};
  return {{w.q, w.q_bias, 0},
          {w.k, w.k_bias, z.context},
          {w.v, w.v_bias, z.context + z.kv}};
}

std::vector<Piece> mlp_pieces(const LayerWeights& w, const MlpShape& unit) {
  if (w.gate_up.defined())
    return {{w.gate_up, {}, 0}};
  if (!w.gate.defined())
    return {{w.up, w.up_bias, 0}};
  return {{w.gate, w.gate_bias, 0}, {w.up, w.up_bias, unit.width}};
}

namespace {

std::vector<AdapterPiece> defined_ones(std::vector<AdapterPiece> pieces) {
  std::erase_if(
    pieces, [](const AdapterPiece& piece) { return !piece.adapter.defined(); });
  return pieces;
}

} // namespace

std::vector<AdapterPiece> qkv_adapters(const LayerAdapters& w,
                                       const LayerAdapters& g, const Sizes& z) {
  return defined_ones(
    {{w.q, g.q, 0}, {w.k, g.k, z.context}, {w.v, g.v, z.context + z.kv}});
}

std::vector<AdapterPiece> mlp_adapters(const LayerAdapters& w,
                                       const LayerAdapters& g,
                                       const MlpShape& unit) {
  const std::int64_t up = unit.columns() - unit.width;
  return defined_ones({{w.gate, g.gate, 0}, {w.up, g.up, up}});
}

AdapterMath adapter_math(const Transformer& model, const Sizes& z,
                         Workspace& workspace) {
  return {*model.backend, z.rows(), model.weights.adapter_scale, workspace};
}

void send(Backend& backend, net::Channel& to, ConstTypedPtr x,
          std::int64_t count, const char* name) {
  if (count == 0)
    return;
  const auto bytes = static_cast<std::size_t>(count) * size_bytes(x.type());
  if (net::StreamChannel* streams = to.on_streams(x.data())) {
    backend.copy(x, {streams->next_message(bytes), x.type()}, count);
    return streams->send(name);
  }
  backend.wait();
  to.send(x.data(), bytes, name);
}

void receive(Backend& backend, net::Channel& from, TypedPtr x,
             std::int64_t count, const char* name) {
  if (count == 0)
    return;
  const auto bytes = static_cast<std::size_t>(count) * size_bytes(x.type());
  if (net::StreamChannel* streams = from.on_streams(x.data()))
    return streams->receive(x.data(), bytes, name);
  backend.wait();
  from.receive(x.data(), bytes, name);
}

} // namespace troupe::models::stack
