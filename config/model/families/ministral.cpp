// Ministral: Mistral with a window in all layers or in those that config.json
// lists.
#include "config/model/family.hpp"

#include <nlohmann/json.hpp>

namespace troupe {

namespace {

void ministral_read(const HfObject& config, ModelShape& shape) {
  // null means none, an absent key means transformers' default
  const bool none = config.has_null("sliding_window");
  shape.sliding_window = none ? 0 : config.size("sliding_window", 4096);
  read_layer_types(config, shape, [none](std::int64_t) { return !none; });
  for (std::size_t i = 0; i < shape.windowed_layers.size(); ++i)
    if (none && shape.windowed_layers[i])
      config.fail("layer_types",
                  "\"full_attention\" for each layer (sliding_window is null)");
}

void ministral_print(const ModelShape& shape, HfJson& config) {
  print_sliding_window(shape, config);
  print_layer_types(shape, config);
}

} // namespace

Family ministral_family() {
  Family family = mistral_family();
  family.name = "ministral";
  family.causal_class = "MinistralForCausalLM";
  family.classifier_class = "MinistralForSequenceClassification";
  family.read = ministral_read;
  family.print = ministral_print;
  return family;
}

} // namespace troupe
