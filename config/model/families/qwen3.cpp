// Qwen3: RMS norms over each head's query and key before the rotation; the head
// dimension has its own key.
#include "config/model/families/qwen_window.hpp"

#include <nlohmann/json.hpp>

namespace troupe {

Family qwen3_family() {
  Family family;
  family.name = "qwen3";
  family.causal_class = "Qwen3ForCausalLM";
  family.classifier_class = "Qwen3ForSequenceClassification";
  family.defaults.kv_heads = 32;
  family.defaults.head_dim = 128;
  family.defaults.positions = 32768;
  family.traits.qk_norm = QkNormScope::head;
  family.read = [](const HfObject& config, ModelShape& shape) {
    shape.attention_bias = config.flag("attention_bias", false);
    shape.output_bias = shape.attention_bias;
    read_qwen_window(config, shape);
  };
  family.print = [](const ModelShape& shape, HfJson& config) {
    config["attention_bias"] = shape.attention_bias;
    print_qwen_window(shape, config);
  };
  return family;
}

} // namespace troupe
