#include "models/decoder.hpp"

#include "config/error.hpp"
#include "models/decode_kernels.hpp"
#include "models/head_norm.hpp"
#include "models/run_context.hpp"
#include "models/soft_cap.hpp"
#include "net/channel.hpp"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>

namespace troupe::models {
namespace {

constexpr std::int64_t decode_parallel_floats = 1 << 15; // below: one thread

/// B^T of a weight [out, in] as the products want it.
PackedMatrix pack_weight(const float* weight, std::int64_t out, std::int64_t in,
                         DType operands) {
  return {ConstMatrix{weight, in, 1}.transposed(), in, out, operands};
}

/// Weights [out_i, in] one below the other, packed as one.
PackedMatrix pack_stacked(const at::Tensor& fused,
                          std::initializer_list<at::Tensor> parts,
                          DType operands) {
  if (fused.defined())
    return pack_weight(fused.const_data_ptr<float>(), fused.size(0),
                       fused.size(1), operands);
  std::vector<float> rows;
  std::int64_t out = 0;
  std::int64_t in = 0;
  for (const at::Tensor& part : parts) {
    if (!part.defined())
      continue;
    TROUPE_CHECK(part.is_contiguous() && part.scalar_type() == at::kFloat,
                 "weights are contiguous f32");
    const float* from = part.const_data_ptr<float>();
    rows.insert(rows.end(), from, from + part.numel());
    out += part.size(0);
    in = part.size(1);
  }
  return pack_weight(rows.data(), out, in, operands);
}

std::vector<float> stack_bias(std::initializer_list<at::Tensor> parts) {
  std::vector<float> bias;
  for (const at::Tensor& part : parts)
    if (part.defined()) {
      const float* from = part.const_data_ptr<float>();
      bias.insert(bias.end(), from, from + part.numel());
    }
  return bias;
}

const float* pointer_or_null(const std::vector<float>& bias) {
  return bias.empty() ? nullptr : bias.data();
}

/// Runs body(begin, end) over rows, on all threads where it pays.
template <class Body>
void over_rows(std::int64_t rows, std::int64_t width, const Body& body) {
  const std::int64_t grain
    = std::max<std::int64_t>(1, decode_parallel_floats / width);
  if (rows <= grain)
    return body(0, rows);
  at::parallel_for(0, rows, grain, body);
}

} // namespace

Decoder::Decoder(const ModelShape& shape, const Weights& weights)
  : shape_(shape),
    weights_(weights),
    rope_(shape),
    heads_width_(shape.num_heads * shape.head_dim),
    kv_width_(shape.num_kv_heads * shape.head_dim) {
  TROUPE_CHECK(!weights.scalar_head, "a scalar head does not generate");
}

void Decoder::pack() {
  layers_.clear();
  const auto pack = [&](const at::Tensor& fused,
                        std::initializer_list<at::Tensor> parts = {}) {
    return pack_stacked(fused, parts, weights_.operands);
  };
  for (const LayerWeights& w : weights_.layers) {
    Layer& layer = layers_.emplace_back();
    layer.qkv = pack(w.qkv, {w.q, w.k, w.v});
    layer.qkv_bias = stack_bias({w.q_bias, w.k_bias, w.v_bias});
    layer.o = pack(w.o);
    if (w.has_experts()) {
      layer.router = pack_stacked(w.moe.router, {}, DType::f32);
      for (const ExpertWeights& e : w.moe.experts)
        layer.experts.push_back(
          {pack(e.gate_up, {e.gate, e.up}), pack(e.down)});
      continue;
    }
    layer.gate_up = pack(w.gate_up, {w.gate, w.up});
    layer.gate_up_bias = stack_bias({w.gate_bias, w.up_bias});
    layer.down = pack(w.down);
  }
  if (weights_.head.defined())
    head_ = pack(weights_.head);
}

void Decoder::release() {
  layers_.clear();
  head_ = PackedMatrix();
  for (AlignedFloats* buffer :
       {&stream_RH_, &normed_RH_, &qkv_RX_, &context_RX_, &gate_up_RX_,
        &activation_RI_, &branch_RH_, &expert_RH_, &last_NH_, &logits_NV_,
        &peer_logits_})
    *buffer = AlignedFloats();
}

void Decoder::feed(std::span<const DecodeRow> rows, KvCache& cache,
                   const RunContext& context) {
  TROUPE_CHECK(layers_.size() == weights_.layers.size(),
               "weights are packed before they are used");
  const auto num_rows = static_cast<std::int64_t>(rows.size());
  const std::int64_t hidden = shape_.hidden_size;
  if (!shape_.learned_positions)
    rope_.grow(cache.capacity());
  normed_RH_.reserve(num_rows * hidden);
  qkv_RX_.reserve(num_rows * (heads_width_ + 2 * kv_width_));
  context_RX_.reserve(num_rows * heads_width_);
  gate_up_RX_.reserve(num_rows * 2 * shape_.intermediate_size);
  activation_RI_.reserve(num_rows * shape_.intermediate_size);
  groups_.clear();
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (i == 0 || rows[i].slot != rows[i - 1].slot)
      groups_.push_back(i);
  groups_.push_back(rows.size());

  const TensorPeers peers(context);
  if (context.groups.first_stage())
    embed(rows, peers);
  else
    context.groups.previous->receive(stream_RH_.reserve(num_rows * hidden),
                                     stream_bytes(num_rows), "decode stream");
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    context.check();
    const auto layer = static_cast<std::int64_t>(i);
    norm(weights_.layers[i].input_norm, num_rows);
    attention(layer, rows, cache, peers);
    norm(weights_.layers[i].post_norm, num_rows);
    mlp(layer, num_rows, peers);
  }
  if (!context.groups.last_stage())
    context.groups.next->send(stream_RH_.data(), stream_bytes(num_rows),
                              "decode stream");
}

std::size_t Decoder::stream_bytes(std::int64_t num_rows) const {
  return static_cast<std::size_t>(num_rows * shape_.hidden_size)
         * sizeof(float);
}

void Decoder::embed(std::span<const DecodeRow> rows, const TensorPeers& peers) {
  const std::int64_t hidden = shape_.hidden_size;
  float* stream
    = stream_RH_.reserve(static_cast<std::int64_t>(rows.size()) * hidden);
  const float* table = weights_.embedding.const_data_ptr<float>();
  const std::int64_t known = weights_.embedding.size(0);
  const float scale = embedding_scale(shape_);
  const float* positions = weights_.positions.defined() && peers.first()
                             ? weights_.positions.const_data_ptr<float>()
                             : nullptr;
  for (const DecodeRow& row : rows) {
    const std::int64_t id = row.token - weights_.first_token;
    if (id >= 0 && id < known)
      std::copy_n(table + id * hidden, hidden, stream);
    else // another tensor peer's
      std::fill_n(stream, hidden, 0.0F);
    if (scale != 1.0F)
      for (std::int64_t j = 0; j < hidden; ++j)
        stream[j] *= scale;
    if (positions != nullptr)
      for (std::int64_t j = 0; j < hidden; ++j)
        stream[j] += positions[row.position * hidden + j];
    stream += hidden;
  }
  peers.sum(stream_RH_.data(), static_cast<std::int64_t>(rows.size()) * hidden,
            "embedding");
}

NormShape Decoder::norm_shape(std::int64_t num_rows) const {
  return {num_rows, shape_.hidden_size, static_cast<float>(shape_.norm_eps),
          shape_.norm};
}

void Decoder::norm(const Norm& by, std::int64_t num_rows) {
  const std::int64_t hidden = shape_.hidden_size;
  over_rows(num_rows, hidden, [&](std::int64_t begin, std::int64_t end) {
    norm_rows(norm_shape(end - begin), stream_RH_.data() + begin * hidden,
              by.weights(), normed_RH_.data() + begin * hidden);
  });
}

void Decoder::attention(std::int64_t layer, std::span<const DecodeRow> rows,
                        KvCache& cache, const TensorPeers& peers) {
  const Layer& packed = layers_[static_cast<std::size_t>(layer)];
  const LayerWeights& w = weights_.layers[static_cast<std::size_t>(layer)];
  const auto num_rows = static_cast<std::int64_t>(rows.size());
  const std::int64_t hidden = shape_.hidden_size;
  gemm(num_rows, {normed_RH_.data(), hidden}, packed.qkv,
       {qkv_RX_.data(), packed.qkv.n()},
       {.accumulate = false, .bias = pointer_or_null(packed.qkv_bias)});

  // A sequence's head is one thread's: its new keys stand before their use.
  const std::int64_t kv_heads = shape_.num_kv_heads;
  const auto num_groups = static_cast<std::int64_t>(groups_.size()) - 1;
  const auto work = [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const auto group = static_cast<std::size_t>(i / kv_heads);
      const std::size_t first = groups_[group];
      attend_rows(layer, i % kv_heads,
                  rows.subspan(first, groups_[group + 1] - first),
                  static_cast<std::int64_t>(first), cache);
    }
  };
  if (num_rows * hidden < decode_parallel_floats / 4)
    work(0, num_groups * kv_heads);
  else
    at::parallel_for(0, num_groups * kv_heads, 1, work);

  add_product(num_rows, context_RX_, packed.o, w.o_bias, w.behind_attention,
              peers);
}

void Decoder::attend_rows(std::int64_t layer, std::int64_t head,
                          std::span<const DecodeRow> rows,
                          std::int64_t first_row, KvCache& cache) {
  static thread_local AlignedFloats scores;
  scores.reserve(cache.capacity());
  const LayerWeights& w = weights_.layers[static_cast<std::size_t>(layer)];
  const std::int32_t slot = rows.front().slot;
  const CachedHead cached{cache.keys(layer, slot, head),
                          cache.values(layer, slot, head),
                          cache.capacity(),
                          cache.value_stride(),
                          shape_.head_dim,
                          static_cast<float>(shape_.attention_cap),
                          w.window};
  const std::int64_t width = heads_width_ + 2 * kv_width_;
  const std::int64_t dim = shape_.head_dim;
  const std::int64_t queries = shape_.num_heads / shape_.num_kv_heads;
  const auto scale = static_cast<float>(
    1.0
    / std::sqrt(shape_.query_scalar > 0 ? shape_.query_scalar
                                        : static_cast<double>(dim)));
  float* row_qkv = qkv_RX_.data() + first_row * width;
  for (const DecodeRow& row : rows) {
    float* key = row_qkv + heads_width_ + head * dim;
    place_head(w.k_norm, row.position, 1.0F, key);
    append_to_cache(cached, row.position, key, key + kv_width_);
    row_qkv += width;
  }
  row_qkv = qkv_RX_.data() + first_row * width;
  float* row_out = context_RX_.data() + first_row * heads_width_;
  for (const DecodeRow& row : rows) {
    for (std::int64_t i = head * queries; i < (head + 1) * queries; ++i) {
      float* query = row_qkv + i * dim;
      place_head(w.q_norm, row.position, scale, query);
      attend(cached, query, row.position + 1, scores.data(), row_out + i * dim);
    }
    row_qkv += width;
    row_out += heads_width_;
  }
}

/// A query's or key's head as the scores want it: normed, rotated, scaled.
void Decoder::place_head(const at::Tensor& norm, std::int32_t position,
                         float scale, float* head) const {
  const std::int64_t dim = shape_.head_dim;
  if (norm.defined())
    head_norm({1, dim, 1, dim, static_cast<float>(shape_.norm_eps)},
              norm.const_data_ptr<float>(), head, nullptr);
  if (!shape_.learned_positions)
    return rope_head(head, rope_.cos(position), rope_.sin(position), dim,
                     scale);
  for (std::int64_t i = 0; i < dim; ++i)
    head[i] *= scale;
}

void Decoder::mlp(std::int64_t layer, std::int64_t num_rows,
                  const TensorPeers& peers) {
  const Layer& packed = layers_[static_cast<std::size_t>(layer)];
  const LayerWeights& w = weights_.layers[static_cast<std::size_t>(layer)];
  const std::int64_t hidden = shape_.hidden_size;
  if (w.has_experts())
    return experts(layer, num_rows, peers);
  const std::int64_t width = shape_.intermediate_size;
  const std::int64_t columns = packed.gate_up.n();
  gemm(num_rows, {normed_RH_.data(), hidden}, packed.gate_up,
       {gate_up_RX_.data(), columns},
       {.accumulate = false, .bias = pointer_or_null(packed.gate_up_bias)});
  over_rows(num_rows, width, [&](std::int64_t begin, std::int64_t end) {
    mlp_unit_rows({end - begin, width, shape_.activation, shape_.gated_mlp},
                  gate_up_RX_.data() + begin * columns,
                  activation_RI_.data() + begin * width);
  });
  add_product(num_rows, activation_RI_, packed.down, w.down_bias, w.behind_mlp,
              peers);
}

void Decoder::cap(float* logits, std::int64_t count) const {
  if (shape_.logit_cap > 0)
    cap_logits(logits, count, static_cast<float>(shape_.logit_cap));
}

const float* Decoder::logits(std::span<const std::int64_t> rows,
                             const RunContext& context) {
  const auto count = static_cast<std::int64_t>(rows.size());
  const std::int64_t hidden = shape_.hidden_size;
  float* last = last_NH_.reserve(count * hidden);
  for (std::int64_t i = 0; i < count; ++i)
    norm_rows(norm_shape(1),
              stream_RH_.data() + rows[static_cast<std::size_t>(i)] * hidden,
              weights_.final_norm.weights(), last + i * hidden);
  const TensorPeers peers(context);
  const std::int64_t vocab = shape_.vocab_size;
  float* out = logits_NV_.reserve(count * vocab);
  if (peers.alone()) {
    gemm(count, {last, hidden}, head_, {out, vocab});
    cap(out, count * vocab);
    return out;
  }
  // Each peer's run of the vocabulary, padded to the longest, then side by
  // side.
  const std::int64_t run = (vocab + peers.size() - 1) / peers.size();
  float* all = peer_logits_.reserve(count * run * (peers.size() + 1));
  float* mine = all + count * run * peers.size();
  gemm(count, {last, hidden}, head_, {mine, run});
  peers.collect(mine, all, count * run, "logits");
  for (std::int64_t first = 0; first < vocab; first += run)
    for (std::int64_t i = 0; i < count; ++i)
      std::copy_n(all + (first / run * count + i) * run,
                  std::min(run, vocab - first), out + i * vocab + first);
  cap(out, count * vocab);
  return out;
}

} // namespace troupe::models
