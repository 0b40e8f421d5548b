#include "models/transformer/decoder.hpp"

#include "config/base/error.hpp"
#include "models/kernels/typed_tensor.hpp"
#include "models/parallel/run_context.hpp"
#include "models/transformer/stack.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace troupe::models {

namespace {

/// Returns G*D.
std::int64_t kv_width(const ModelShape& shape) {
  return shape.num_kv_heads * shape.head_dim;
}

} // namespace

Decoder::Decoder(const ModelShape& shape, const Weights& weights,
                 Backend& backend)
  : shape_(shape),
    weights_(weights),
    backend_(backend),
    rope_(shape, backend),
    heads_width_(shape.num_heads * shape.head_dim),
    table_(backend) {
  TROUPE_CHECK(!weights.scalar_head, "a scalar head does not generate");
  capture_.recorder = backend.recorder();
  for (TypedBlock* buffer : activations())
    *buffer = TypedBlock(backend.memory(), backend.storage(weights.operands));
  for (AlignedFloats* buffer : buffers())
    *buffer = AlignedFloats(backend.memory());
}

std::array<TypedBlock*, 10> Decoder::activations() {
  return {&stream_RH_,       &normed_RH_,     &qkv_RX_,        &context_RX_,
          &gate_up_RX_,      &branch_RH_,     &activation_RI_, &mlp_in_RH_,
          &experts_.rows_RH, &logits_.last_NH};
}

std::array<AlignedFloats*, 6> Decoder::buffers() {
  return {&experts_.logits_RE, &experts_.routing, &logits_.all_NV,
          &logits_.of_peers,   &logits_.drawn_N,  &sums_2R_};
}

void Decoder::feed(std::span<const DecodeToken> tokens, KvCache& cache,
                   const RunContext& context, const PassDraw& draw) {
  TROUPE_CHECK(layers_.size() == weights_.layers.size(),
               "weights are packed before they are used");
  peers_ = TensorPeers(context, backend_);
  peers_.use_streams(cache.table());
  cache.begin_pass(tokens);
  pass_.begin(tokens);
  const bool recorded = capture_.recorder && peers_.can_be_captured()
                        && stays_on_device() && pass_.has_one_token_per_slot();
  const PassShape shape = recorded ? pass_.round_up(cache) : PassShape{};
  PassWork work{.embeds = context.groups.first_stage()};
  if (recorded && !draw.rows_N.empty())
    work.draws = draw.filters;
  make_room(recorded ? cache.num_slots() : pass_.num_tokens(), cache);
  if (work.draws)
    make_logit_room(cache.num_slots());
  if (!draw.rows_N.empty()) // once per cache, so that draws stay in place
    make_draw_room(cache.num_slots());
  write_tables(draw, work);
  const std::int64_t floats = pass_.num_tokens() * shape_.hidden_size;
  if (!work.embeds)
    stack::receive(backend_, *context.groups.previous, stream_RH_.data(),
                   floats, "decode stream");
  if (recorded)
    compute_recorded(work, shape, cache, context);
  else
    compute(work, cache, peers_, context);
  if (!context.groups.last_stage())
    stack::send(backend_, *context.groups.next, stream_RH_.data(), floats,
                "decode stream");
  if (!recorded && !draw.rows_N.empty())
    draw_rows(picked(draw.rows_N), std::ssize(draw.rows_N), draw.filters,
              peers_);
}

/// Writes tokens and the names of draws to the device: those of all rows if all
/// are drawn, else of the rows that are.
void Decoder::write_tables(const PassDraw& draw, const PassWork& work) {
  logits_.wanted.assign(draw.rows_N.begin(), draw.rows_N.end());
  if (!work.draws) {
    std::iota(logits_.wanted.begin(), logits_.wanted.end(), 0);
    return table_.write(pass_.tokens(), draw.keys_N);
  }
  keys_.assign(pass_.tokens().size(), {});
  for (std::size_t i = 0; i < draw.rows_N.size(); ++i)
    keys_[static_cast<std::size_t>(draw.rows_N[i])] = draw.keys_N[i];
  table_.write(pass_.tokens(), keys_);
}

void Decoder::compute(const PassWork& work, KvCache& cache,
                      const TensorPeers& peers, const RunContext& context) {
  if (work.embeds)
    embed(peers);
  layers(cache, peers, context);
  if (work.draws)
    draw_rows(stream_RH_.data(), pass_.num_tokens(), *work.draws, peers);
}

/// Reallocates the buffers of passes if needed; they stay in place otherwise.
void Decoder::make_room(std::int64_t num_rows, const KvCache& cache) {
  if (!shape_.learned_positions)
    rope_.grow(cache.capacity());
  if (num_rows <= room_rows_)
    return;
  room_rows_ = num_rows;
  table_.reserve(room_rows_);
  stream_RH_.reserve(room_rows_ * shape_.hidden_size);
  normed_RH_.reserve(room_rows_ * shape_.hidden_size);
  if (shape_.changes_branches())
    branch_RH_.reserve(room_rows_ * shape_.hidden_size);
  if (shape_.parallel_residual)
    mlp_in_RH_.reserve(room_rows_ * shape_.hidden_size);
  if (shape_.qk_norm == QkNormScope::all_heads)
    sums_2R_.reserve(2 * room_rows_);
  qkv_RX_.reserve(room_rows_ * (heads_width_ + 2 * kv_width(shape_)));
  context_RX_.reserve(room_rows_ * heads_width_);
  std::int64_t width = 0;
  for (const LayerWeights& w : weights_.layers) {
    if (w.has_mlp())
      width = std::max(width, w.up.size(0));
    if (w.has_experts())
      width = std::max(width, shape_.experts.width);
  }
  gate_up_RX_.reserve(room_rows_ * 2 * width);
  activation_RI_.reserve(room_rows_ * width);
}

/// Runs the layers on the stream, in place.
void Decoder::layers(KvCache& cache, const TensorPeers& peers,
                     const RunContext& context) {
  const std::int64_t num_rows = pass_.num_tokens();
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    context.check();
    const auto layer = static_cast<std::int64_t>(i);
    const LayerWeights& w = weights_.layers[i];
    ConstTypedPtr mlp_in;
    if (shape_.parallel_residual)
      mlp_in = norm(w.post_norm, num_rows, mlp_in_RH_);
    attention(layer, norm(w.input_norm, num_rows, normed_RH_), cache, peers);
    if (!shape_.parallel_residual)
      mlp_in = norm(w.post_norm, num_rows, normed_RH_);
    mlp(layer, mlp_in, peers);
  }
}

void Decoder::embed(const TensorPeers& peers) {
  const at::Tensor& table = weights_.embedding;
  Embedding from{.width = shape_.hidden_size,
                 .tokens = {numbers_of(table), table.size(0)},
                 .first_token = weights_.first_token,
                 .factor = embedding_scale(shape_),
                 .drawn_N = draw_before()};
  if (weights_.positions.defined() && peers.first())
    from.positions
      = {numbers_of(weights_.positions), weights_.positions.size(0)};
  const std::int64_t num_rows = pass_.num_tokens();
  backend_.embed(from, {table_.tokens(), pass_.tokens().size()},
                 stream_RH_.data());
  peers.sum(stream_RH_.data(), num_rows * shape_.hidden_size, "embedding");
}

NormShape Decoder::norm_shape(std::int64_t num_rows) const {
  return {num_rows, shape_.hidden_size, static_cast<float>(shape_.norm_eps),
          shape_.norm};
}

ConstTypedPtr Decoder::norm(const Norm& by, std::int64_t num_rows,
                            TypedBlock& to) {
  if (!by.defined())
    return stream_RH_.data();
  backend_.norm(norm_shape(num_rows), stream_RH_.data(), by.weights(),
                to.data(), nullptr);
  return to.data();
}

void Decoder::norm_heads(const LayerWeights& w, std::int64_t num_rows,
                         const TensorPeers& peers) {
  const std::int64_t stride = heads_width_ + 2 * kv_width(shape_);
  const auto eps = static_cast<float>(shape_.norm_eps);
  float* const sums = sums_2R_.data();
  const auto shape_of = [&](std::int64_t width, const float* squares_R) {
    return QkNormShape{num_rows,
                       stride,
                       1,
                       width,
                       eps,
                       shape_.norm,
                       {squares_R, nullptr, width * peers.size()}};
  };
  const QkNormShape queries = shape_of(heads_width_, sums);
  const QkNormShape keys = shape_of(kv_width(shape_), sums + num_rows);
  const TypedPtr q = qkv_RX_.data();
  const TypedPtr k = q + heads_width_;
  backend_.head_sums(queries, {q, q, stride, stride}, nullptr, sums);
  backend_.head_sums(keys, {k, k, stride, stride}, nullptr, sums + num_rows);
  peers.sum(sums, 2 * num_rows, "sum over heads");
  backend_.qk_norm(queries, w.qk_norms.q.const_data_ptr<float>(), q, nullptr);
  backend_.qk_norm(keys, w.qk_norms.k.const_data_ptr<float>(), k, nullptr);
}

void Decoder::attention(std::int64_t layer, ConstTypedPtr in_RH, KvCache& cache,
                        const TensorPeers& peers) {
  const Layer& packed = layers_[static_cast<std::size_t>(layer)];
  const LayerWeights& w = weights_.layers[static_cast<std::size_t>(layer)];
  const std::int64_t num_rows = pass_.num_tokens();
  backend_.product(num_rows, in_RH, *packed.qkv,
                   {qkv_RX_.data(), packed.qkv->out()},
                   {.accumulate = false, .bias = packed.qkv_bias.data()});
  DecodeAttention what{layer, shape_.num_heads, shape_.num_kv_heads,
                       shape_.head_dim};
  const double scale = stack::stated_score_scale(shape_);
  what.scale = static_cast<float>(
    scale > 0 ? scale : 1.0 / std::sqrt(static_cast<double>(shape_.head_dim)));
  what.cap = static_cast<float>(shape_.caps.scores);
  what.window = w.positions.window;
  what.norm_eps = static_cast<float>(shape_.norm_eps);
  what.norm = shape_.norm;
  if (shape_.qk_norm == QkNormScope::all_heads)
    norm_heads(w, num_rows, peers);
  if (shape_.qk_norm == QkNormScope::head) {
    what.q_norm_D = w.qk_norms.q.const_data_ptr<float>();
    what.k_norm_D = w.qk_norms.k.const_data_ptr<float>();
  }
  what.rope = rope_.of(w.positions.rope);
  const DecodeTokens tokens{{table_.tokens(), pass_.tokens().size()},
                            pass_.groups()};
  backend_.decode_attention(what, tokens, cache, qkv_RX_.data(),
                            context_RX_.data());
  add_product(num_rows, context_RX_, *packed.o, w.o_bias, w.behind_attention,
              peers);
}

void Decoder::mlp(std::int64_t layer, ConstTypedPtr in_RH,
                  const TensorPeers& peers) {
  const std::int64_t num_rows = pass_.num_tokens();
  const Layer& packed = layers_[static_cast<std::size_t>(layer)];
  const LayerWeights& w = weights_.layers[static_cast<std::size_t>(layer)];
  const TypedPtr to = begin_branch(num_rows, peers);
  if (w.has_mlp()) {
    backend_.product(num_rows, in_RH, *packed.gate_up,
                     {gate_up_RX_.data(), packed.gate_up->out()},
                     {.accumulate = false, .bias = packed.gate_up_bias.data()});
    backend_.mlp_unit(
      {num_rows, w.up.size(0), shape_.activation, shape_.gated_mlp},
      gate_up_RX_.data(), activation_RI_.data());
    end_product(num_rows, activation_RI_, *packed.down, w.down_bias, peers, to);
  }
  if (w.has_experts())
    experts(layer, in_RH, to);
  end_branch(num_rows, w.behind_mlp, peers);
}

} // namespace troupe::models
