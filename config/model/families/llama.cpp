// LLaMA 1 to 3: RMS norms, SiLU gates, rotary positions (plain, linear or
// llama3 scaling); biases only where config.json asks for them.
#include "config/model/family.hpp"

#include <nlohmann/json.hpp>

namespace troupe {

Family llama_family() {
  Family family;
  family.name = "llama";
  family.causal_class = "LlamaForCausalLM";
  family.classifier_class = "LlamaForSequenceClassification";
  family.read = [](const HfObject& config, ModelShape& shape) {
    shape.attention_bias = config.flag("attention_bias", false);
    shape.output_bias = shape.attention_bias;
    shape.mlp_bias = config.flag("mlp_bias", false);
  };
  family.print = [](const ModelShape& shape, HfJson& config) {
    config["attention_bias"] = shape.attention_bias;
    config["mlp_bias"] = shape.mlp_bias;
  };
  return family;
}

} // namespace troupe
