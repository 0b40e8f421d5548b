#include "models/transformer.hpp"

#include "config/error.hpp"
#include "models/attention.hpp"
#include "models/internal/stack.hpp"
#include "models/linear.hpp"
#include "models/mlp.hpp"
#include "models/norm.hpp"
#include "models/run_context.hpp"

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

// Buffers that every layer uses anew.
struct LayerScratch {
  float* norm_TH;
  float* act_TI;
};

void layer_forward(const Transformer& model, const PackedTokens& batch,
                   const LayerWeights& w, const LayerSaved& s,
                   const LayerScratch& scratch, float* out_TH) {
  const stack::Sizes z = stack::sizes(model.shape, batch);
  const NormShape norm{z.tokens, z.hidden, z.eps};
  rms_norm(norm, s.input_TH, w.input_norm.const_data_ptr<float>(),
           scratch.norm_TH, s.rstd1_T);
  for (const stack::Piece& p : stack::qkv_pieces(w, z))
    linear(z.tokens, {scratch.norm_TH, z.hidden}, p.weight, p.bias,
           {s.qkv_TX + p.column, z.qkv});
  rope({z.tokens, z.qkv, model.shape.num_heads + model.shape.num_kv_heads,
        model.shape.head_dim},
       model.rope, batch.positions_T.data(), s.qkv_TX);
  attention(stack::attention_shape(model.shape, batch), s.qkv_TX, s.context_TX,
            s.lse_AT);
  stack::copy(s.input_TH, s.middle_TH, z.tokens * z.hidden);
  linear(z.tokens, {s.context_TX, z.context}, w.o, w.o_bias,
         {s.middle_TH, z.hidden}, true);
  rms_norm(norm, s.middle_TH, w.post_norm.const_data_ptr<float>(),
           scratch.norm_TH, s.rstd2_T);
  for (const stack::Piece& p : stack::mlp_pieces(w, z))
    linear(z.tokens, {scratch.norm_TH, z.hidden}, p.weight, p.bias,
           {s.gate_up_TX + p.column, z.gate_up});
  swiglu(z.tokens, z.gate_up / 2, s.gate_up_TX, scratch.act_TI);
  stack::copy(s.middle_TH, out_TH, z.tokens * z.hidden);
  linear(z.tokens, {scratch.act_TI, z.gate_up / 2}, w.down, w.down_bias,
         {out_TH, z.hidden}, true);
}

LayerSaved layer_memory(const stack::Sizes& z, Workspace& workspace) {
  LayerSaved s;
  s.rstd1_T = workspace.take(z.tokens);
  s.qkv_TX = workspace.take(z.tokens * z.qkv);
  s.lse_AT = workspace.take(z.tokens * z.heads);
  s.context_TX = workspace.take(z.tokens * z.context);
  s.middle_TH = workspace.take(z.tokens * z.hidden);
  s.rstd2_T = workspace.take(z.tokens);
  s.gate_up_TX = workspace.take(z.tokens * z.gate_up);
  return s;
}

void keep_probe(std::vector<std::vector<float>>* probe, const float* x_TH,
                const stack::Sizes& z) {
  if (probe != nullptr)
    probe->emplace_back(x_TH, x_TH + z.tokens * z.hidden);
}

} // namespace

Weights weights_of(const ModelShape& shape, const Parameters& parameters,
                   Plane plane) {
  const WeightLookup look{parameters, plane};
  Weights w;
  w.embedding = look.required("model.embed_tokens.weight");
  for (std::int64_t i = 0; i < shape.num_layers; ++i)
    w.layers.push_back(layer_weights(look, i));
  w.final_norm = look.required("model.norm.weight");
  w.scalar_head = shape.scalar_head;
  if (shape.scalar_head)
    w.head = look.required("score.weight");
  else
    w.head
      = shape.tied_embeddings ? w.embedding : look.required("lm_head.weight");
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
  for (std::size_t t = 0; t < ids_T.size(); ++t) {
    const std::int64_t id = ids_T[t];
    if (id < 0 || id >= model.shape.vocab_size)
      throw FailureError(Failure{Errc::bad_input, "engine",
                                 "token id " + std::to_string(id)
                                   + " is outside the vocabulary of "
                                   + std::to_string(model.shape.vocab_size),
                                 ""});
    std::copy_n(table + id * width, width,
                out_TH + static_cast<std::int64_t>(t) * width);
  }
}

float* forward(const Transformer& model, const PackedTokens& batch,
               const RunContext& context, Workspace& workspace, Saved* saved,
               std::vector<std::vector<float>>* probe) {
  const stack::Sizes z = stack::sizes(model.shape, batch);
  const std::int64_t stream = z.tokens * z.hidden;
  float* hidden = workspace.take(stream);
  float* x = workspace.take(stream);
  embed(model, batch.ids_T, x);
  keep_probe(probe, x, z);
  const LayerScratch scratch{workspace.take(stream),
                             workspace.take(z.tokens * z.gate_up / 2)};
  LayerSaved memory;
  if (saved == nullptr) {
    memory = layer_memory(z, workspace);
    memory.lse_AT = nullptr;
  }
  for (const LayerWeights& w : model.weights.layers) {
    context.check();
    if (saved != nullptr)
      memory = layer_memory(z, workspace);
    memory.input_TH = x;
    if (saved != nullptr) {
      x = workspace.take(stream);
      saved->layers.push_back(memory);
    }
    layer_forward(model, batch, w, memory, scratch, x);
    keep_probe(probe, x, z);
  }
  float* rstd_T = nullptr;
  if (saved != nullptr) {
    rstd_T = workspace.take(z.tokens);
    saved->last_TH = x;
    saved->rstd_T = rstd_T;
  }
  rms_norm({z.tokens, z.hidden, z.eps}, x,
           model.weights.final_norm.const_data_ptr<float>(), hidden, rstd_T);
  return hidden;
}

} // namespace troupe::models
