#include "models/transformer/weights.hpp"

#include "config/base/error.hpp"
#include "config/model/lora.hpp"
#include "config/model/product_operands.hpp"
#include "models/parallel/local_model.hpp"

#include <string>

namespace troupe::models {

namespace {

// Returns `count` adjacent parameters from `name` on; undefined if there are
// none.
at::Tensor weight_view(const Parameters& parameters, Plane plane,
                       const std::string& name, std::size_t count = 1) {
  const std::int64_t found = parameters.find(name);
  if (found < 0)
    return {};
  const auto index = static_cast<std::size_t>(found);
  return plane == Plane::weight && read_by_products(parameters.shapes()[index])
           ? parameters.product_view(index, count)
           : parameters.fused_view(index, count, plane);
}

// Looks up parameters by name: those of a model in one plane, or of a model
// with adapters, whose frozen parameters have the plane of weights only.
struct WeightLookup {
  const Parameters* parameters; // null: no views of these
  Plane plane;
  const Parameters* adapters = nullptr;
  Plane adapter_plane = Plane::weight;

  at::Tensor optional(const std::string& name) const {
    return parameters == nullptr ? at::Tensor{}
                                 : weight_view(*parameters, plane, name);
  }
  at::Tensor required(const std::string& name) const {
    at::Tensor found = optional(name);
    TROUPE_CHECK(found.defined() || parameters == nullptr,
                 "the model has no parameter " + name);
    return found;
  }
  // Returns a parameter that is trained beside adapters too.
  at::Tensor head(const std::string& name) const {
    if (adapters != nullptr)
      if (at::Tensor own = weight_view(*adapters, adapter_plane, name);
          own.defined())
        return own;
    return required(name);
  }
  Adapter adapter(const std::string& matrix) const {
    if (adapters == nullptr)
      return {};
    return {weight_view(*adapters, adapter_plane, lora_a_name(matrix)),
            weight_view(*adapters, adapter_plane, lora_b_name(matrix))};
  }
  // Returns the norm of that name; undefined if there is none.
  Norm norm(const std::string& name) const {
    return {optional(name + ".weight"), optional(name + ".bias")};
  }
  Norm required_norm(const std::string& name) const {
    return {required(name + ".weight"), optional(name + ".bias")};
  }
  at::Tensor neighbours(const std::string& first, std::size_t count) const {
    return parameters == nullptr
             ? at::Tensor{}
             : weight_view(*parameters, plane, first, count);
  }
};

void attention_weights(const WeightLookup& look, const std::string& at,
                       LayerWeights& w) {
  w.q = look.required(at + "q_proj.weight");
  w.k = look.required(at + "k_proj.weight");
  w.v = look.required(at + "v_proj.weight");
  w.q_bias = look.optional(at + "q_proj.bias");
  w.k_bias = look.optional(at + "k_proj.bias");
  w.v_bias = look.optional(at + "v_proj.bias");
  if (!w.q_bias.defined())
    w.qkv = look.neighbours(at + "q_proj.weight", 3);
  w.o = look.required(at + "o_proj.weight");
  w.o_bias = look.optional(at + "o_proj.bias");
  w.qk_norms.q = look.optional(at + "q_norm.weight");
  w.qk_norms.k = look.optional(at + "k_norm.weight");
}

void mlp_weights(const WeightLookup& look, const std::string& at,
                 LayerWeights& w) {
  w.gate = look.optional(at + "gate_proj.weight");
  w.up = look.required(at + "up_proj.weight");
  w.gate_bias = look.optional(at + "gate_proj.bias");
  w.up_bias = look.optional(at + "up_proj.bias");
  if (w.gate.defined() && !w.gate_bias.defined())
    w.gate_up = look.neighbours(at + "gate_proj.weight", 2);
  w.down = look.required(at + "down_proj.weight");
  w.down_bias = look.optional(at + "down_proj.bias");
}

MoeWeights moe_weights(const WeightLookup& look, const std::string& at,
                       const LocalModel& part) {
  MoeWeights moe;
  moe.router = look.required(at + "router.weight");
  moe.correction = look.optional(at + "router.correction");
  const std::int64_t here = part.whole.experts.count / part.strategy.ep;
  moe.first_expert = here * expert_rank_of(part.strategy, part.where);
  for (std::int64_t e = 0; e < here; ++e) {
    const std::string expert
      = at + "experts." + std::to_string(moe.first_expert + e) + ".";
    moe.experts.push_back({look.required(expert + "gate_proj.weight"),
                           look.required(expert + "up_proj.weight"),
                           look.neighbours(expert + "gate_proj.weight", 2),
                           look.required(expert + "down_proj.weight")});
  }
  return moe;
}

// If norms follow attention and MLP, the MLP's input norm has the longer name.
void norm_weights(const WeightLookup& look, const std::string& at,
                  NormPlacement placement, LayerWeights& w) {
  const std::string after = at + "post_attention_layernorm";
  if (placement != NormPlacement::outputs)
    w.input_norm = look.required_norm(at + "input_layernorm");
  if (placement == NormPlacement::inputs) {
    w.post_norm = look.required_norm(after);
    return;
  }
  w.behind_attention = look.required_norm(after);
  if (placement == NormPlacement::both)
    w.post_norm = look.required_norm(at + "pre_feedforward_layernorm");
  w.behind_mlp = look.required_norm(at + "post_feedforward_layernorm");
}

// `mlp_at`: prefix of the MLP for all tokens.
LayerAdapters layer_adapters(const WeightLookup& look, const std::string& at,
                             const std::string& mlp_at) {
  const auto attention
    = [&](const char* name) { return look.adapter(at + "self_attn." + name); };
  const auto mlp
    = [&](const char* name) { return look.adapter(mlp_at + name); };
  return {attention("q_proj.weight"), attention("k_proj.weight"),
          attention("v_proj.weight"), attention("o_proj.weight"),
          mlp("gate_proj.weight"),    mlp("up_proj.weight"),
          mlp("down_proj.weight")};
}

LayerWeights layer_weights(const WeightLookup& look, const LocalModel& part,
                           std::int64_t layer) {
  const ModelShape& shape = part.whole;
  const std::string at = "model.layers." + std::to_string(layer) + ".";
  LayerWeights w;
  norm_weights(look, at, shape.norm_placement, w);
  attention_weights(look, at + "self_attn.", w);
  std::string mlp_at = at + "mlp.";
  if (shape.experts.in_layer(layer)) {
    w.moe = moe_weights(look, mlp_at, part);
    w.moe.ordinal = shape.experts.layers_before(layer);
    mlp_at += "shared_experts.";
  }
  if (shape.mlp_width(layer) > 0)
    mlp_weights(look, mlp_at, w);
  w.adapters = layer_adapters(look, at, mlp_at);
  w.positions = {shape.window_of(layer), shape.rope_of(layer)};
  return w;
}

float* data_or_null(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.mutable_data_ptr<float>() : nullptr;
}

} // namespace

NormWeights Norm::weights() const {
  return {data_or_null(weight), data_or_null(bias)};
}

NormGrads Norm::grads() const {
  return {data_or_null(weight), data_or_null(bias)};
}

Weights weights_of(const ModelShape& shape, const Parameters& parameters,
                   Plane plane) {
  return weights_of(LocalModel(shape, Strategy{}, Coordinate{}), parameters,
                    plane);
}

namespace {

Weights looked_up(const LocalModel& part, const WeightLookup& look) {
  const ModelShape& shape = part.local;
  Weights w;
  w.first_token = part.first_token;
  if (part.first_stage()) {
    w.embedding = look.required("model.embed_tokens.weight");
    w.positions = look.optional("model.embed_positions.weight");
  }
  for (std::int64_t i = 0; i < shape.num_layers; ++i)
    w.layers.push_back(layer_weights(look, part, part.first_layer + i));
  w.scalar_head = shape.scalar_head;
  if (!part.last_stage())
    return w;
  w.final_norm = look.required_norm("model.norm");
  if (shape.scalar_head)
    w.head = look.head("score.weight");
  else
    w.head = look.required(shape.tied_embeddings ? "model.embed_tokens.weight"
                                                 : "lm_head.weight");
  return w;
}

} // namespace

Weights weights_of(const LocalModel& part, const Parameters& parameters,
                   Plane plane) {
  return looked_up(part, {&parameters, plane});
}

Weights weights_of(const LocalModel& base, const Parameters* frozen,
                   const Parameters& trained, Plane plane) {
  return looked_up(base, {frozen, Plane::weight, &trained, plane});
}

} // namespace troupe::models
