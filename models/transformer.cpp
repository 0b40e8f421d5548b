#include "models/transformer.hpp"

#include "config/error.hpp"
#include "models/internal/stack_forward.hpp"
#include "models/norm.hpp"
#include "models/run_context.hpp"
#include "net/channel.hpp"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <string>

namespace troupe::models {

namespace {

LayerSaved layer_memory(const ModelShape& shape, const stack::Sizes& z,
                        Workspace& workspace) {
  LayerSaved s;
  s.rstd1_T = workspace.take(z.own.count);
  s.qkv_TX = workspace.take(z.tokens * z.qkv);
  s.lse_AT = workspace.take(z.tokens * z.heads);
  s.context_TX = workspace.take(z.tokens * z.context);
  s.middle_TH = workspace.take(z.stream);
  s.rstd2_T = workspace.take(z.own.count);
  s.gate_up_TX
    = workspace.take(z.tokens * z.unit.columns()
                     * std::max<std::int64_t>(1, shape.experts_per_token));
  if (shape.query_key_norm)
    s.raw_qk_TX = workspace.take(z.tokens * (z.context + z.kv));
  if (shape.post_norms) {
    s.behind1_TH = workspace.take(z.stream);
    s.rstd3_T = workspace.take(z.own.count);
    s.behind2_TH = workspace.take(z.stream);
    s.rstd4_T = workspace.take(z.own.count);
  }
  return s;
}

void keep_probe(std::vector<std::vector<float>>* probe, const float* x_TH,
                const stack::StackForward& run) {
  if (probe == nullptr)
    return;
  const float* whole_TH = run.peers.gather(
    x_TH, run.scratch.wide_TH, run.z.tokens, run.z.hidden, "gather tokens");
  probe->emplace_back(whole_TH, whole_TH + run.z.tokens * run.z.hidden);
}

} // namespace

PackedTokens pack(std::span<const std::span<const std::int32_t>> sequences) {
  PackedTokens batch;
  batch.cu_seqlens.push_back(0);
  for (const std::span<const std::int32_t> ids : sequences) {
    batch.ids_T.insert(batch.ids_T.end(), ids.begin(), ids.end());
    for (std::size_t i = 0; i < ids.size(); ++i)
      batch.positions_T.push_back(static_cast<std::int32_t>(i));
    batch.cu_seqlens.push_back(static_cast<std::int64_t>(batch.ids_T.size()));
  }
  return batch;
}

void embed(const Transformer& model, std::span<const std::int32_t> ids_T,
           float* out_TH) {
  const std::int64_t width = model.shape.hidden_size;
  const float* table = model.weights.embedding.const_data_ptr<float>();
  const std::int64_t rows = model.weights.embedding.size(0);
  for (std::size_t t = 0; t < ids_T.size(); ++t) {
    const std::int64_t id = ids_T[t];
    if (id < 0 || id >= model.shape.vocab_size)
      throw FailureError(Failure{Errc::bad_input, "engine",
                                 "token id " + std::to_string(id)
                                   + " is outside the vocabulary of "
                                   + std::to_string(model.shape.vocab_size),
                                 ""});
    float* to = out_TH + static_cast<std::int64_t>(t) * width;
    const std::int64_t row = id - model.weights.first_token;
    if (row >= 0 && row < rows)
      std::copy_n(table + row * width, width, to);
    else
      std::fill_n(to, width, 0.0F);
  }
  const float scale = embedding_scale(model.shape);
  if (scale == 1.0F)
    return;
  const std::int64_t count = static_cast<std::int64_t>(ids_T.size()) * width;
  for (std::int64_t i = 0; i < count; ++i)
    out_TH[i] *= scale;
}

float embedding_scale(const ModelShape& shape) {
  return shape.scaled_embedding
           ? std::sqrt(static_cast<float>(shape.hidden_size))
           : 1.0F;
}

namespace {

// Adds the learned positions' rows, which exist on every tensor peer.
void add_positions(const Transformer& model, const PackedTokens& batch,
                   const TensorPeers& peers, float* x_TH) {
  const at::Tensor& table = model.weights.positions;
  if (!table.defined() || !peers.first())
    return;
  const std::int64_t width = model.shape.hidden_size;
  for (std::size_t t = 0; t < batch.positions_T.size(); ++t) {
    const std::int64_t position = batch.positions_T[t];
    if (position >= table.size(0))
      throw FailureError(Failure{Errc::bad_input, "engine",
                                 "a sequence is longer than the model's "
                                   + std::to_string(table.size(0))
                                   + " positions",
                                 ""});
    const float* from = table.const_data_ptr<float>() + position * width;
    float* to = x_TH + static_cast<std::int64_t>(t) * width;
    for (std::int64_t j = 0; j < width; ++j)
      to[j] += from[j];
  }
}

// Where a layer notes which experts it chose.
Routing* routing_of(Saved* saved, Routing& unsaved) {
  if (saved == nullptr)
    return &unsaved;
  return saved->routings.emplace_back(std::make_unique<Routing>()).get();
}

std::size_t stream_bytes(const stack::Sizes& z) {
  return static_cast<std::size_t>(z.stream) * sizeof(float);
}

} // namespace

std::int64_t hidden_floats(const Transformer& model, const PackedTokens& batch,
                           const RunContext& context) {
  return TensorPeers(context, model.split_tokens)
           .gathered_rows(batch.num_tokens())
         * model.shape.hidden_size;
}

float* forward(const Transformer& model, const PackedTokens& batch,
               const RunContext& context, Workspace& workspace, Saved* saved,
               std::vector<std::vector<float>>* probe) {
  const TensorPeers peers(context, model.split_tokens);
  const stack::Sizes z = stack::sizes(model, batch, peers);
  float* hidden = workspace.take(z.gathered);
  float* x = workspace.take(z.stream);
  float* wide = peers.split() ? workspace.take(z.gathered) : nullptr;
  const stack::LayerScratch scratch{
    workspace.take(z.stream), workspace.take(z.tokens * z.unit.width), wide};
  const stack::StackForward run{model, batch, peers, z, scratch, workspace};
  if (context.groups.first_stage()) {
    model.gate->before_forward(-1);
    float* rows = peers.split() ? wide : x;
    embed(model, batch.ids_T, rows);
    add_positions(model, batch, peers, rows);
    peers.to_stream(rows, x, z.tokens, z.hidden, "embedding");
  } else {
    context.groups.previous->receive(x, stream_bytes(z), "activations");
  }
  keep_probe(probe, x, run);
  const bool keeps = saved != nullptr && !saved->recompute;
  LayerSaved memory;
  Routing routing; // of layers that are not saved
  if (!keeps)
    memory = layer_memory(model.shape, z, workspace); // of all layers in turn
  if (saved == nullptr)
    memory.lse_AT = nullptr;
  std::int64_t number = model.first_layer;
  for (const LayerWeights& w : model.weights.layers) {
    context.check();
    model.gate->before_forward(number++);
    if (keeps)
      memory = layer_memory(model.shape, z, workspace);
    memory.input_TH = x;
    memory.routing = routing_of(saved, routing);
    if (saved != nullptr) {
      x = workspace.take(z.stream);
      saved->layers.push_back(memory);
    }
    run.layer(w, memory, x);
    keep_probe(probe, x, run);
  }
  if (!context.groups.last_stage()) {
    context.groups.next->send(x, stream_bytes(z), "activations");
    return nullptr;
  }
  model.gate->before_forward(number);
  float* rstd_T = nullptr;
  if (saved != nullptr) {
    rstd_T = workspace.take(z.own.count);
    saved->last_TH = x;
    saved->rstd_T = rstd_T;
  }
  float* normed = peers.split() ? scratch.norm_TH : hidden;
  norm(z.norm_shape(), x, model.weights.final_norm.weights(), normed, rstd_T);
  peers.gather(normed, hidden, z.tokens, z.hidden, "gather tokens");
  return hidden;
}

} // namespace troupe::models
