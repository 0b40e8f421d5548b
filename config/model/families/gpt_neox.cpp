// GPT-NeoX and Pythia: attention and MLP read the same stream, LayerNorm and
// biases everywhere, a quarter of each head is rotated, and checkpoints store
// queries, keys and values of a head next to each other in one tensor.
#include "config/model/families/renamed.hpp"
#include "config/model/family.hpp"

#include <nlohmann/json.hpp>

#include <array>

namespace troupe {

namespace {

constexpr std::array<Rename, 4> neox_prefixes = {{
  {"model.embed_tokens.", "gpt_neox.embed_in."},
  {"model.norm.", "gpt_neox.final_layer_norm."},
  {"lm_head.", "embed_out."},
  {"model.layers.", "gpt_neox.layers."},
}};
constexpr std::array<Rename, 3> neox_joined = {{
  {"self_attn.q_proj", "attention.query_key_value"},
  {"self_attn.k_proj", "attention.query_key_value"},
  {"self_attn.v_proj", "attention.query_key_value"},
}};
constexpr std::array<Rename, 3> neox_inside = {{
  {"self_attn.o_proj", "attention.dense"},
  {"up_proj", "dense_h_to_4h"},
  {"down_proj", "dense_4h_to_h"},
}};

StoredAs neox_stored(const ModelShape& shape, const ParameterShape& parameter) {
  const std::string name = renamed(parameter.name, neox_prefixes);
  for (std::size_t i = 0; i < neox_joined.size(); ++i)
    if (name.find(neox_joined[i].ours) != std::string::npos)
      return {.name = renamed(name, neox_joined),
              .first_row = static_cast<std::int64_t>(i) * shape.head_dim,
              .rows = 3 * shape.num_heads * shape.head_dim,
              .heads = {shape.head_dim, 3 * shape.head_dim, 0}};
  return {.name = renamed(name, neox_inside)};
}

void neox_read(const HfObject& config, ModelShape& shape) {
  shape.attention_bias = config.flag("attention_bias", true);
  shape.output_bias = shape.attention_bias;
  shape.parallel_residual = config.flag("use_parallel_residual", true);
  shape.num_kv_heads = shape.num_heads;
}

void neox_print(const ModelShape& shape, HfJson& config) {
  config["attention_bias"] = shape.attention_bias;
  config["use_parallel_residual"] = shape.parallel_residual;
  config["hidden_dropout"] = 0.0;
}

} // namespace

Family gpt_neox_family() {
  Family family;
  family.name = "gpt_neox";
  family.causal_class = "GPTNeoXForCausalLM";
  family.classifier_class = "GPTNeoXForSequenceClassification";
  family.keys.kv_heads = "";
  family.keys.head_dim = "";
  family.keys.norm_eps = "layer_norm_eps";
  family.keys.rope_theta = "rotary_emb_base";
  family.keys.rotated_share = "rotary_pct";
  family.pads_embedding = false;
  family.defaults.vocab_size = 50432;
  family.defaults.heads = 64;
  family.defaults.inner_times = 4;
  family.defaults.norm_eps = 1e-5;
  family.defaults.rotated_share = 0.25;
  family.rotates_part = true;
  family.traits.norm = NormKind::layer;
  family.traits.activation = Activation::gelu;
  family.traits.gated_mlp = false;
  family.traits.parallel_residual = true;
  family.traits.attention_bias = true;
  family.traits.output_bias = true;
  family.traits.mlp_bias = true;
  family.activations = {"gelu"};
  family.read = neox_read;
  family.print = neox_print;
  family.stored = neox_stored;
  return family;
}

} // namespace troupe
