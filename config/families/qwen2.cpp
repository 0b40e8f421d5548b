// Qwen2: LLaMA with biases on queries, keys and values, without a key that
// says so.
#include "config/family.hpp"

#include <nlohmann/json.hpp>

namespace troupe {

namespace {

void qwen2_read(const HfObject& config, ModelShape& shape) {
  if (!config.flag("use_sliding_window", false))
    return;
  shape.sliding_window = config.size("sliding_window", 4096);
  shape.window_from_layer = config.size("max_window_layers", 28);
  read_layer_types(config, shape, [](std::int64_t) { return false; });
  if (config.find("layer_types"))
    return;
  for (std::size_t i = 0; i < shape.windowed_layers.size(); ++i)
    shape.windowed_layers[i]
      = static_cast<std::int64_t>(i) >= shape.window_from_layer;
}

} // namespace

Family qwen2_family() {
  Family family;
  family.name = "qwen2";
  family.causal_class = "Qwen2ForCausalLM";
  family.classifier_class = "Qwen2ForSequenceClassification";
  family.keys.head_dim = "head_dim";
  family.defaults.kv_heads = 32;
  family.defaults.positions = 32768;
  family.traits.attention_bias = true;
  family.read = qwen2_read;
  family.print = [](const ModelShape& shape, HfJson& config) {
    config["use_sliding_window"] = shape.sliding_window > 0;
    if (shape.sliding_window == 0)
      return;
    config["sliding_window"] = shape.sliding_window;
    config["max_window_layers"] = shape.window_from_layer;
  };
  return family;
}

} // namespace troupe
