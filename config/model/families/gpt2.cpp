// GPT-2: LayerNorm and biases everywhere, learned positions, an MLP without a
// gate, and weights stored transposed in checkpoints (Conv1D), with queries,
// keys and values in one tensor.
#include "config/model/family.hpp"
#include "config/model/hf_dropout.hpp"

#include <nlohmann/json.hpp>

#include <string_view>

namespace troupe {

const std::array<const char*, 3> gpt2_dropouts
  = {"attn_pdrop", "embd_pdrop", "resid_pdrop"};

namespace {

struct Gpt2Name {
  std::string_view ours;
  std::string_view theirs;
  std::int64_t part = 0; ///< index within joined queries, keys and values
  bool joined = false;
};

constexpr Gpt2Name gpt2_layer_names[] = {
  {"input_layernorm", "ln_1"},
  {"self_attn.q_proj", "attn.c_attn", 0, true},
  {"self_attn.k_proj", "attn.c_attn", 1, true},
  {"self_attn.v_proj", "attn.c_attn", 2, true},
  {"self_attn.o_proj", "attn.c_proj"},
  {"post_attention_layernorm", "ln_2"},
  {"mlp.up_proj", "mlp.c_fc"},
  {"mlp.down_proj", "mlp.c_proj"},
};

/// Maps "model.layers.3.mlp.up_proj.bias" to "transformer.h.3.mlp.c_fc.bias".
StoredAs gpt2_stored(const ModelShape& shape, const ParameterShape& parameter) {
  constexpr std::string_view layers = "model.layers.";
  const std::string_view name = parameter.name;
  if (name == "model.embed_tokens.weight")
    return {.name = "transformer.wte.weight"};
  if (name == "model.embed_positions.weight")
    return {.name = "transformer.wpe.weight"};
  if (name.starts_with("model.norm."))
    return {.name = "transformer.ln_f." + std::string(name.substr(11))};
  if (!name.starts_with(layers))
    return {.name = parameter.name};
  const auto dot = name.find('.', layers.size());
  const std::string_view inside = name.substr(dot + 1);
  for (const Gpt2Name& known : gpt2_layer_names) {
    if (!inside.starts_with(known.ours))
      continue;
    StoredAs stored;
    stored.name
      = "transformer.h."
        + std::string(name.substr(layers.size(), dot + 1 - layers.size()))
        + std::string(known.theirs)
        + std::string(inside.substr(known.ours.size()));
    stored.transposed = !parameter.vector;
    if (known.joined) {
      stored.first_row = known.part * shape.hidden_size;
      stored.rows = 3 * shape.hidden_size;
    }
    return stored;
  }
  return {.name = parameter.name};
}

void gpt2_read(const HfObject& config, ModelShape& shape) {
  for (const char* key :
       {"scale_attn_by_inverse_layer_idx", "add_cross_attention"})
    if (config.flag(key, false))
      config.fail(key, "false (the only kind this version runs)");
  if (!config.flag("scale_attn_weights", true))
    config.fail("scale_attn_weights", "true (the only kind this version runs)");
  shape.num_kv_heads = shape.num_heads;
}

} // namespace

Family gpt2_family() {
  Family family;
  family.name = "gpt2";
  family.causal_class = "GPT2LMHeadModel";
  family.classifier_class = "GPT2ForSequenceClassification";
  family.keys.hidden = "n_embd";
  family.keys.layers = "n_layer";
  family.keys.heads = "n_head";
  family.keys.kv_heads = "";
  family.keys.head_dim = "";
  family.keys.inner = "n_inner";
  family.keys.positions = "n_positions";
  family.keys.norm_eps = "layer_norm_epsilon";
  family.keys.activation = "activation_function";
  family.keys.rope_theta = "";
  family.pads_embedding = false;
  family.defaults.inner_times = 4;
  family.defaults.positions = 1024;
  family.defaults.norm_eps = 1e-5;
  family.defaults.tied = true;
  family.traits.norm = NormKind::layer;
  family.traits.activation = Activation::gelu_tanh;
  family.traits.gated_mlp = false;
  family.traits.learned_positions = true;
  family.traits.attention_bias = true;
  family.traits.output_bias = true;
  family.traits.mlp_bias = true;
  family.activations = {"gelu_new", "gelu_pytorch_tanh"};
  family.read = gpt2_read;
  family.print = [](const ModelShape&, HfJson& config) {
    for (const char* key : gpt2_dropouts)
      config[key] = 0.0;
  };
  family.stored = gpt2_stored;
  return family;
}

} // namespace troupe
