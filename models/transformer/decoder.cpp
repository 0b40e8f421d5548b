#include "models/transformer/decoder.hpp"

#include "config/base/error.hpp"
#include "models/kernels/typed_tensor.hpp"
#include "models/parallel/run_context.hpp"
#include "models/transformer/stack.hpp"

#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <cmath>
#include <iterator>

namespace troupe::models {

namespace {

constexpr std::int64_t token_floats = sizeof(DecodeToken) / sizeof(float);

} // namespace

Decoder::Decoder(const ModelShape& shape, const Weights& weights,
                 Backend& backend)
  : shape_(shape),
    weights_(weights),
    backend_(backend),
    rope_(shape, backend),
    heads_width_(shape.num_heads * shape.head_dim),
    kv_width_(shape.num_kv_heads * shape.head_dim) {
  TROUPE_CHECK(!weights.scalar_head, "a scalar head does not generate");
  if (!shape.experts.exist()) // with experts, the host assigns rows to them
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

std::array<AlignedFloats*, 5> Decoder::buffers() {
  return {&experts_.logits_RE, &logits_.all_NV, &logits_.of_peers, &rows_,
          &sums_2R_};
}

/// Prepares weights [out_i, in], stacked along their rows, as one.
Decoder::Prepared Decoder::prepare(const at::Tensor& fused,
                                   std::initializer_list<at::Tensor> parts,
                                   DType operands) {
  std::vector<at::Tensor> found;
  if (fused.defined())
    found.push_back(fused);
  else
    std::ranges::copy_if(parts, std::back_inserter(found),
                         [](const at::Tensor& part) { return part.defined(); });
  return backend_.prepare(found, operands);
}

Decoder::Prepared
Decoder::prepare_adapted(Layer& layer, const at::Tensor& fused,
                         std::initializer_list<at::Tensor> parts,
                         std::initializer_list<Adapter> adapters) {
  if (std::ranges::none_of(adapters, &Adapter::defined))
    return prepare(fused, parts, weights_.operands);
  std::vector<at::Tensor> found;
  std::int64_t count = 0;
  std::int64_t narrow = 0;
  for (const at::Tensor& part : parts)
    count += part.defined() ? part.numel() : 0;
  for (const Adapter& adapter : adapters)
    narrow = std::max(narrow, adapter.defined() ? adapter.a.numel() : 0);
  AlignedFloats merged(backend_.memory());
  float* to = merged.reserve(count + narrow);
  float* scratch = to + count;
  const auto* adapter = adapters.begin();
  for (const at::Tensor& part : parts) {
    const Adapter& own = *adapter++;
    if (!part.defined())
      continue;
    backend_.copy(numbers_of(part), to, part.numel());
    if (own.defined())
      merge_adapter(backend_, own, weights_.adapter_scale, to, scratch);
    found.push_back(at::from_blob(to, part.sizes(), at::kFloat));
    to += part.numel();
  }
  backend_.wait();
  Prepared prepared = backend_.prepare(found, weights_.operands);
  backend_.wait();
  if (prepared->is_view())
    layer.merged.push_back(std::move(merged));
  return prepared;
}

AlignedFloats Decoder::stack_bias(std::initializer_list<at::Tensor> parts) {
  std::int64_t count = 0;
  for (const at::Tensor& part : parts)
    count += part.defined() ? part.numel() : 0;
  AlignedFloats bias(backend_.memory());
  float* to = bias.reserve(count);
  for (const at::Tensor& part : parts)
    if (part.defined()) {
      backend_.copy(part.const_data_ptr<float>(), to, part.numel());
      to += part.numel();
    }
  return bias;
}

void Decoder::pack() {
  capture_.passes.clear();
  layers_.clear();
  const auto pack = [&](const at::Tensor& fused,
                        std::initializer_list<at::Tensor> parts = {}) {
    return prepare(fused, parts, weights_.operands);
  };
  std::int64_t column = 0;
  for (const LayerWeights& w : weights_.layers) {
    Layer& layer = layers_.emplace_back();
    const LayerAdapters& a = w.adapters;
    layer.qkv = prepare_adapted(layer, w.qkv, {w.q, w.k, w.v}, {a.q, a.k, a.v});
    layer.qkv_bias = stack_bias({w.q_bias, w.k_bias, w.v_bias});
    layer.o = prepare_adapted(layer, {}, {w.o}, {a.o});
    if (w.has_experts()) {
      layer.first_expert_column = column;
      column += shape_.experts.per_token;
      layer.router = prepare(w.moe.router, {}, DType::f32);
      for (const ExpertWeights& e : w.moe.experts)
        layer.experts.push_back(
          {pack(e.gate_up, {e.gate, e.up}), pack(e.down)});
    }
    if (!w.has_mlp())
      continue;
    layer.gate_up
      = prepare_adapted(layer, w.gate_up, {w.gate, w.up}, {a.gate, a.up});
    layer.gate_up_bias = stack_bias({w.gate_bias, w.up_bias});
    layer.down = prepare_adapted(layer, {}, {w.down}, {a.down});
  }
  if (weights_.head.defined())
    head_ = pack(weights_.head);
}

void Decoder::feed(std::span<const DecodeToken> tokens, KvCache& cache,
                   const RunContext& context) {
  TROUPE_CHECK(layers_.size() == weights_.layers.size(),
               "weights are packed before they are used");
  const TensorPeers peers(context, backend_);
  cache.begin_pass(tokens);
  pass_.begin(tokens);
  // Sums over tp ranks run partly on the host.
  const bool recorded
    = capture_.recorder && peers.alone() && pass_.has_one_token_per_slot();
  const PassShape shape = recorded ? pass_.round_up(cache) : PassShape{};
  make_room(cache);
  backend_.write(pass_.tokens().data(), rows_.data(),
                 pass_.tokens().size_bytes());
  const std::int64_t floats = pass_.num_tokens() * shape_.hidden_size;
  if (context.groups.first_stage())
    embed(peers);
  else
    stack::receive(backend_, *context.groups.previous, stream_RH_.data(),
                   floats, "decode stream");
  if (recorded)
    recorded_layers(shape, cache, peers, context);
  else
    layers(cache, peers, context);
  if (!context.groups.last_stage())
    stack::send(backend_, *context.groups.next, stream_RH_.data(), floats,
                "decode stream");
}

/// Reallocates a pass's buffers if needed; they stay in place otherwise.
void Decoder::make_room(const KvCache& cache) {
  const std::int64_t num_rows = pass_.num_tokens();
  if (num_rows <= room_rows_ && cache.resets() == room_resets_)
    return;
  capture_.passes.clear();
  room_rows_ = std::max(num_rows, room_rows_);
  room_resets_ = cache.resets();
  if (!shape_.learned_positions)
    rope_.grow(cache.capacity());
  rows_.reserve(room_rows_ * token_floats);
  stream_RH_.reserve(room_rows_ * shape_.hidden_size);
  normed_RH_.reserve(room_rows_ * shape_.hidden_size);
  if (shape_.changes_branches())
    branch_RH_.reserve(room_rows_ * shape_.hidden_size);
  if (shape_.parallel_residual)
    mlp_in_RH_.reserve(room_rows_ * shape_.hidden_size);
  if (shape_.qk_norm == QkNormScope::all_heads)
    sums_2R_.reserve(2 * room_rows_);
  qkv_RX_.reserve(room_rows_ * (heads_width_ + 2 * kv_width_));
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

void Decoder::recorded_layers(const PassShape& shape, KvCache& cache,
                              const TensorPeers& peers,
                              const RunContext& context) {
  if (GraphCapture* known = capture_.passes.find(shape))
    return known->run();
  layers(cache, peers, context);
  if (capture_.is_refused)
    return;
  auto graph
    = capture_.recorder->record([&, peers] { layers(cache, peers, context); });
  capture_.is_refused = graph == nullptr;
  if (graph)
    capture_.passes.add(shape, std::move(graph));
}

void Decoder::embed(const TensorPeers& peers) {
  const std::int64_t hidden = shape_.hidden_size;
  const std::span<const DecodeToken> tokens = pass_.tokens();
  const TypedPtr stream = stream_RH_.data();
  const std::int64_t known = weights_.embedding.size(0);
  table_rows_.clear();
  for (const DecodeToken& token : tokens) {
    const std::int64_t id = token.id - weights_.first_token;
    table_rows_.push_back(id < known ? id : -1); // another tp rank has it
  }
  backend_.gather_rows({table_rows_, hidden, embedding_scale(shape_)},
                       numbers_of(weights_.embedding), stream);
  if (weights_.positions.defined() && peers.first()) {
    std::ranges::transform(tokens, table_rows_.begin(), &DecodeToken::position);
    backend_.add_rows({table_rows_, hidden}, numbers_of(weights_.positions),
                      stream);
  }
  peers.sum(stream, pass_.num_tokens() * hidden, "embedding");
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
  const std::int64_t stride = heads_width_ + 2 * kv_width_;
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
  const QkNormShape keys = shape_of(kv_width_, sums + num_rows);
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
  const DecodeTokens tokens{
    {reinterpret_cast<const DecodeToken*>(rows_.data()), pass_.tokens().size()},
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

const float* Decoder::finish(float* logits, std::int64_t count) {
  if (shape_.multipliers.logits != 1)
    backend_.scale(logits, count,
                   static_cast<float>(1.0 / shape_.multipliers.logits));
  if (shape_.caps.logits > 0)
    backend_.cap_logits(logits, count, static_cast<float>(shape_.caps.logits));
  logits_.of_host
    = std::make_unique<const net::HostRead>(backend_.read(logits, count));
  return logits_.of_host->floats();
}

const float* Decoder::logits(std::span<const std::int64_t> rows,
                             const RunContext& context) {
  const auto count = static_cast<std::int64_t>(rows.size());
  const std::int64_t hidden = shape_.hidden_size;
  const TypedPtr last = logits_.last_NH.reserve(count * hidden);
  backend_.gather_rows({rows, hidden}, stream_RH_.data(), normed_RH_.data());
  backend_.norm(norm_shape(count), normed_RH_.data(),
                weights_.final_norm.weights(), last, nullptr);
  const TensorPeers peers(context, backend_);
  const std::int64_t vocab = shape_.vocab_size;
  float* out = logits_.all_NV.reserve(count * vocab);
  if (peers.alone()) {
    backend_.product(count, last, *head_, {out, vocab}, {});
    return finish(out, count * vocab);
  }
  // All-gather of each rank's part of the vocabulary, padded to the longest,
  // then placed side by side.
  const std::int64_t run = (vocab + peers.size() - 1) / peers.size();
  float* all = logits_.of_peers.reserve(count * run * (peers.size() + 1));
  float* mine = all + count * run * peers.size();
  backend_.product(count, last, *head_, {mine, run}, {});
  peers.collect(mine, all, count * run, "logits");
  for (std::int64_t first = 0; first < vocab; first += run)
    backend_.copy_box(
      {{1, 1, count, std::min(run, vocab - first)}, {0, 0, run}, {0, 0, vocab}},
      all + first * count, out + first);
  return finish(out, count * vocab);
}

} // namespace troupe::models
