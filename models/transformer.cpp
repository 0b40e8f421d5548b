#include "models/transformer.hpp"

#include "config/error.hpp"
#include "models/internal/stack_forward.hpp"
#include "models/model_part.hpp"
#include "models/norm.hpp"
#include "models/run_context.hpp"
#include "net/channel.hpp"

#include <ATen/Parallel.h>

#include <algorithm>
#include <string>

namespace troupe::models {

namespace {

// Looks parameters of one plane up by HF name.
struct WeightLookup {
  const Parameters& parameters;
  Plane plane;

  at::Tensor optional(const std::string& name) const {
    const std::int64_t index = parameters.find(name);
    return index < 0 ? at::Tensor{}
                     : parameters.view(static_cast<std::size_t>(index), plane);
  }
  at::Tensor required(const std::string& name) const {
    at::Tensor found = optional(name);
    TROUPE_CHECK(found.defined(), "the model has no parameter " + name);
    return found;
  }
  at::Tensor neighbours(const std::string& first, std::size_t count) const {
    const std::int64_t index = parameters.find(first);
    return parameters.fused_view(static_cast<std::size_t>(index), count, plane);
  }
};

LayerWeights layer_weights(const WeightLookup& look, std::int64_t layer) {
  const std::string at = "model.layers." + std::to_string(layer) + ".";
  const std::string attention = at + "self_attn.";
  const std::string mlp = at + "mlp.";
  LayerWeights w;
  w.input_norm = look.required(at + "input_layernorm.weight");
  w.q = look.required(attention + "q_proj.weight");
  w.k = look.required(attention + "k_proj.weight");
  w.v = look.required(attention + "v_proj.weight");
  w.q_bias = look.optional(attention + "q_proj.bias");
  w.k_bias = look.optional(attention + "k_proj.bias");
  w.v_bias = look.optional(attention + "v_proj.bias");
  if (!w.q_bias.defined())
    w.qkv = look.neighbours(attention + "q_proj.weight", 3);
  w.o = look.required(attention + "o_proj.weight");
  w.o_bias = look.optional(attention + "o_proj.bias");
  w.post_norm = look.required(at + "post_attention_layernorm.weight");
  w.gate = look.required(mlp + "gate_proj.weight");
  w.up = look.required(mlp + "up_proj.weight");
  w.gate_bias = look.optional(mlp + "gate_proj.bias");
  w.up_bias = look.optional(mlp + "up_proj.bias");
  if (!w.gate_bias.defined())
    w.gate_up = look.neighbours(mlp + "gate_proj.weight", 2);
  w.down = look.required(mlp + "down_proj.weight");
  w.down_bias = look.optional(mlp + "down_proj.bias");
  return w;
}

LayerSaved layer_memory(const stack::Sizes& z, Workspace& workspace) {
  LayerSaved s;
  s.rstd1_T = workspace.take(z.own.count);
  s.qkv_TX = workspace.take(z.tokens * z.qkv);
  s.lse_AT = workspace.take(z.tokens * z.heads);
  s.context_TX = workspace.take(z.tokens * z.context);
  s.middle_TH = workspace.take(z.stream);
  s.rstd2_T = workspace.take(z.own.count);
  s.gate_up_TX = workspace.take(z.tokens * z.gate_up);
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

Weights weights_of(const ModelShape& shape, const Parameters& parameters,
                   Plane plane) {
  return weights_of(ModelPart(shape, Strategy{}, Coordinate{}), parameters,
                    plane);
}

Weights weights_of(const ModelPart& part, const Parameters& parameters,
                   Plane plane) {
  const ModelShape& shape = part.local;
  const WeightLookup look{parameters, plane};
  Weights w;
  w.first_token = part.first_token;
  if (part.first_stage)
    w.embedding = look.required("model.embed_tokens.weight");
  for (std::int64_t i = 0; i < shape.num_layers; ++i)
    w.layers.push_back(layer_weights(look, part.first_layer + i));
  w.scalar_head = shape.scalar_head;
  if (!part.last_stage)
    return w;
  w.final_norm = look.required("model.norm.weight");
  if (shape.scalar_head)
    w.head = look.required("score.weight");
  else
    w.head = look.required(shape.tied_embeddings ? "model.embed_tokens.weight"
                                                 : "lm_head.weight");
  return w;
}

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
}

namespace {

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
  const stack::Sizes z = stack::sizes(model.shape, batch, peers);
  float* hidden = workspace.take(z.gathered);
  float* x = workspace.take(z.stream);
  float* wide = peers.split() ? workspace.take(z.gathered) : nullptr;
  const stack::LayerScratch scratch{
    workspace.take(z.stream), workspace.take(z.tokens * z.gate_up / 2), wide};
  const stack::StackForward run{model, batch, peers, z, scratch};
  if (context.groups.first_stage()) {
    float* rows = peers.split() ? wide : x;
    embed(model, batch.ids_T, rows);
    peers.to_stream(rows, x, z.tokens, z.hidden, "embedding");
  } else {
    context.groups.previous->receive(x, stream_bytes(z), "activations");
  }
  keep_probe(probe, x, run);
  const bool keeps = saved != nullptr && !saved->recompute;
  LayerSaved memory;
  if (!keeps)
    memory = layer_memory(z, workspace); // of all layers in turn
  if (saved == nullptr)
    memory.lse_AT = nullptr;
  for (std::size_t i = 0; i < model.weights.layers.size(); ++i) {
    const LayerWeights& w = model.weights.layers[i];
    context.check();
    if (model.gate != nullptr)
      model.gate->before_forward(model.first_layer
                                 + static_cast<std::int64_t>(i));
    if (keeps)
      memory = layer_memory(z, workspace);
    memory.input_TH = x;
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
  float* rstd_T = nullptr;
  if (saved != nullptr) {
    rstd_T = workspace.take(z.own.count);
    saved->last_TH = x;
    saved->rstd_T = rstd_T;
  }
  float* normed = peers.split() ? scratch.norm_TH : hidden;
  rms_norm({z.own.count, z.hidden, z.eps}, x,
           model.weights.final_norm.const_data_ptr<float>(), normed, rstd_T);
  peers.gather(normed, hidden, z.tokens, z.hidden, "gather tokens");
  return hidden;
}

} // namespace troupe::models
