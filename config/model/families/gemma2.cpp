// Gemma 2: Gemma with norms also after attention and MLP, soft caps on scores
// and logits, a separate query scale, and a window in every other layer.
#include "config/model/family.hpp"

#include <nlohmann/json.hpp>

namespace troupe {

namespace {

void gemma2_read(const HfObject& config, ModelShape& shape) {
  shape.attention_bias = config.flag("attention_bias", false);
  shape.output_bias = shape.attention_bias;
  shape.multipliers.query_scalar
    = config.positive("query_pre_attn_scalar", 256);
  // an explicit null disables a cap; an absent key means the default
  if (!config.has_null("attn_logit_softcapping"))
    shape.caps.scores = config.positive("attn_logit_softcapping", 50);
  if (!config.has_null("final_logit_softcapping"))
    shape.caps.logits = config.positive("final_logit_softcapping", 30);
  shape.sliding_window = config.size("sliding_window", 4096);
  read_layer_types(config, shape,
                   [](std::int64_t layer) { return layer % 2 == 0; });
}

void gemma2_print(const ModelShape& shape, HfJson& config) {
  const auto cap
    = [](double value) { return value > 0 ? HfJson(value) : HfJson(nullptr); };
  config["attention_bias"] = shape.attention_bias;
  print_query_scalar(shape, config);
  config["attn_logit_softcapping"] = cap(shape.caps.scores);
  config["final_logit_softcapping"] = cap(shape.caps.logits);
  config["sliding_window"] = shape.sliding_window;
  print_layer_types(shape, config);
}

} // namespace

Family gemma2_family() {
  Family family;
  family.name = "gemma2";
  family.causal_class = "Gemma2ForCausalLM";
  family.classifier_class = "Gemma2ForSequenceClassification";
  family.keys.activation = "hidden_activation";
  family.defaults.kv_heads = 4;
  family.defaults.head_dim = 256;
  family.defaults.positions = 8192;
  family.defaults.tied = true;
  family.defaults.pad = 0;
  family.traits.norm = NormKind::rms_one_plus;
  family.traits.activation = Activation::gelu_tanh;
  family.traits.scaled_embedding = true;
  family.traits.norm_placement = NormPlacement::both;
  family.activations = {"gelu_pytorch_tanh"};
  family.read = gemma2_read;
  family.print = gemma2_print;
  return family;
}

} // namespace troupe
