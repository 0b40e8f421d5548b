// Granite 3: LLaMA with constant factors of the embedding, the scores, what a
// layer adds to the stream, and the logits. transformers has no classifier of
// it: the name of ours follows its pattern.
#include "config/model/family.hpp"

#include <nlohmann/json.hpp>

namespace troupe {

namespace {

void granite_read(const HfObject& config, ModelShape& shape) {
  shape.attention_bias = config.flag("attention_bias", false);
  shape.output_bias = shape.attention_bias;
  shape.mlp_bias = config.flag("mlp_bias", false);
  shape.multipliers = {
    .embedding = config.positive("embedding_multiplier", 1),
    .attention = config.positive("attention_multiplier", 1),
    .residual = config.positive("residual_multiplier", 1),
    .logits = config.positive("logits_scaling", 1),
  };
}

void granite_print(const ModelShape& shape, HfJson& config) {
  config["attention_bias"] = shape.attention_bias;
  config["mlp_bias"] = shape.mlp_bias;
  config["embedding_multiplier"] = shape.multipliers.embedding;
  config["attention_multiplier"] = shape.multipliers.attention;
  config["residual_multiplier"] = shape.multipliers.residual;
  config["logits_scaling"] = shape.multipliers.logits;
}

} // namespace

Family granite_family() {
  Family family;
  family.name = "granite";
  family.causal_class = "GraniteForCausalLM";
  family.classifier_class = "GraniteForSequenceClassification";
  family.read = granite_read;
  family.print = granite_print;
  return family;
}

} // namespace troupe
