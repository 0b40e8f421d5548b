// Mistral: LLaMA whose layers see a window of the last tokens.
#include "config/model/family.hpp"

#include <nlohmann/json.hpp>

namespace troupe {

Family mistral_family() {
  Family family;
  family.name = "mistral";
  family.causal_class = "MistralForCausalLM";
  family.classifier_class = "MistralForSequenceClassification";
  family.defaults.kv_heads = 8;
  family.defaults.positions = 131072;
  family.read = [](const HfObject& config, ModelShape& shape) {
    // null means none, an absent key means transformers' default
    const bool none = config.has_null("sliding_window");
    shape.sliding_window = none ? 0 : config.size("sliding_window", 4096);
  };
  family.print = [](const ModelShape& shape, HfJson& config) {
    print_sliding_window(shape, config);
  };
  return family;
}

} // namespace troupe
