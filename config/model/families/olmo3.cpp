// OLMo 3: OLMo 2 with a window in three of four layers, whose rotations are not
// scaled where those of the others are (yarn).
#include "config/model/family.hpp"

#include <nlohmann/json.hpp>

namespace troupe {

namespace {

constexpr double olmo3_theta = 500000;

void olmo3_read(const HfObject& config, ModelShape& shape) {
  shape.attention_bias = config.flag("attention_bias", false);
  shape.output_bias = shape.attention_bias;
  shape.sliding_window = config.size("sliding_window", 4096);
  read_layer_types(config, shape,
                   [](std::int64_t layer) { return (layer + 1) % 4 != 0; });
}

void olmo3_print(const ModelShape& shape, HfJson& config) {
  config["attention_bias"] = shape.attention_bias;
  config["sliding_window"] = shape.sliding_window;
  print_layer_types(shape, config);
}

} // namespace

Family olmo3_family() {
  Family family = olmo2_family();
  family.name = "olmo3";
  family.causal_class = "Olmo3ForCausalLM";
  family.classifier_class = "Olmo3ForSequenceClassification";
  family.keys.local_rope_theta = "";
  family.defaults.rope_theta = olmo3_theta;
  family.defaults.local_rope_theta = olmo3_theta;
  family.read = olmo3_read;
  family.print = olmo3_print;
  return family;
}

} // namespace troupe
