// Gemma 3, text only: Gemma 2 without soft caps, with norms of queries and
// keys, five layers with a window to one without, and a base of the rotations
// for each kind.
#include "config/model/family.hpp"

#include <nlohmann/json.hpp>

namespace troupe {

namespace {

constexpr std::int64_t gemma3_default_pattern = 6;

void gemma3_read(const HfObject& config, ModelShape& shape) {
  shape.attention_bias = config.flag("attention_bias", false);
  shape.output_bias = shape.attention_bias;
  shape.multipliers.query_scalar
    = config.positive("query_pre_attn_scalar", 256);
  for (const char* key : {"attn_logit_softcapping", "final_logit_softcapping"})
    if (config.find(key))
      config.fail(key, "null (Gemma 3 caps nothing)");
  if (config.flag("use_bidirectional_attention", false))
    config.fail("use_bidirectional_attention", "false");
  shape.sliding_window = config.size("sliding_window", 4096);
  const auto pattern
    = config.size("sliding_window_pattern", gemma3_default_pattern);
  read_layer_types(config, shape, [pattern](std::int64_t layer) {
    return (layer + 1) % pattern != 0;
  });
}

void gemma3_print(const ModelShape& shape, HfJson& config) {
  config["attention_bias"] = shape.attention_bias;
  print_query_scalar(shape, config);
  config["sliding_window"] = shape.sliding_window;
  print_layer_types(shape, config);
}

} // namespace

Family gemma3_family() {
  Family family = gemma2_family();
  family.name = "gemma3_text";
  family.causal_class = "Gemma3ForCausalLM";
  family.classifier_class = "Gemma3TextForSequenceClassification";
  family.defaults.vocab_size = 262208;
  family.defaults.heads = 8;
  family.defaults.positions = 131072;
  family.defaults.rope_theta = 1e6;
  family.defaults.local_rope_theta = 1e4;
  family.traits.qk_norm = QkNormScope::head;
  family.read = gemma3_read;
  family.print = gemma3_print;
  return family;
}

} // namespace troupe
