// OLMo 2: norms of the outputs of attention and MLP, none of their inputs, and
// norms of a token's queries and keys over all heads together.
#include "config/model/family.hpp"

#include <nlohmann/json.hpp>

namespace troupe {

Family olmo2_family() {
  Family family;
  family.name = "olmo2";
  family.causal_class = "Olmo2ForCausalLM";
  family.classifier_class = "Olmo2ForSequenceClassification";
  family.defaults.vocab_size = 50304;
  family.defaults.heads = 32;
  family.defaults.norm_eps = 1e-5;
  family.defaults.pad = 1;
  family.traits.norm_placement = NormPlacement::outputs;
  family.traits.qk_norm = QkNormScope::all_heads;
  family.read = [](const HfObject& config, ModelShape& shape) {
    shape.attention_bias = config.flag("attention_bias", false);
    shape.output_bias = shape.attention_bias;
  };
  family.print = [](const ModelShape& shape, HfJson& config) {
    config["attention_bias"] = shape.attention_bias;
  };
  return family;
}

} // namespace troupe
