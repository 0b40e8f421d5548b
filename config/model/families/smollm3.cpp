// SmolLM3: LLaMA with layers that rotate nothing (NoPE): every fourth, or those
// that config.json lists.
#include "config/model/family.hpp"

#include <nlohmann/json.hpp>

namespace troupe {

namespace {

void read_unrotated_layers(const HfObject& config, ModelShape& shape) {
  const auto layers = static_cast<std::size_t>(shape.num_layers);
  const auto interval
    = static_cast<std::size_t>(config.size("no_rope_layer_interval", 4));
  const HfJson* rotated = config.find("no_rope_layers"); // 1: it does rotate
  if (rotated && (!rotated->is_array() || rotated->size() != layers))
    config.fail("no_rope_layers", "1 or 0 per layer");
  shape.unrotated_layers.assign(layers, false);
  for (std::size_t i = 0; i < layers; ++i) {
    if (rotated && rotated->at(i) != 0 && rotated->at(i) != 1)
      config.fail("no_rope_layers", "1 or 0 per layer");
    shape.unrotated_layers[i]
      = rotated ? rotated->at(i) == 0 : (i + 1) % interval == 0;
  }
}

void smollm3_read(const HfObject& config, ModelShape& shape) {
  shape.attention_bias = config.flag("attention_bias", false);
  shape.output_bias = shape.attention_bias;
  shape.mlp_bias = config.flag("mlp_bias", false);
  if (config.flag("use_sliding_window", false))
    config.fail("use_sliding_window", "false (all layers see all tokens)");
  read_unrotated_layers(config, shape);
}

void smollm3_print(const ModelShape& shape, HfJson& config) {
  config["attention_bias"] = shape.attention_bias;
  config["mlp_bias"] = shape.mlp_bias;
  config["use_sliding_window"] = false;
  HfJson rotated = HfJson::array();
  for (const bool unrotated : shape.unrotated_layers)
    rotated.push_back(unrotated ? 0 : 1);
  config["no_rope_layers"] = rotated;
}

} // namespace

Family smollm3_family() {
  Family family;
  family.name = "smollm3";
  family.causal_class = "SmolLM3ForCausalLM";
  family.classifier_class = "SmolLM3ForSequenceClassification";
  family.defaults.kv_heads = 4;
  family.defaults.positions = 32768;
  family.defaults.rope_theta = 2e6;
  family.defaults.tied = true;
  family.defaults.pad = 128004;
  family.read = smollm3_read;
  family.print = smollm3_print;
  return family;
}

} // namespace troupe
