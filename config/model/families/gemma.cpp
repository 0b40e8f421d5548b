// Gemma 1: norms scale by 1 + w, embeddings by sqrt(hidden size), gates are
// GELU (tanh form), and the head is tied to the embedding.
#include "config/model/family.hpp"

#include <nlohmann/json.hpp>

namespace troupe {

namespace {

void gemma_read(const HfObject& config, ModelShape& shape) {
  shape.attention_bias = config.flag("attention_bias", false);
  shape.output_bias = shape.attention_bias;
  // transformers obeys `hidden_activation` of the two keys
  const auto name = config.text("hidden_activation", "gelu_pytorch_tanh");
  if (name != "gelu_pytorch_tanh")
    config.fail("hidden_activation", "\"gelu_pytorch_tanh\"");
}

void gemma_print(const ModelShape& shape, HfJson& config) {
  config["attention_bias"] = shape.attention_bias;
  config["hidden_activation"] = "gelu_pytorch_tanh";
}

} // namespace

Family gemma_family() {
  Family family;
  family.name = "gemma";
  family.causal_class = "GemmaForCausalLM";
  family.classifier_class = "GemmaForSequenceClassification";
  family.defaults.kv_heads = 16;
  family.defaults.head_dim = 256;
  family.defaults.positions = 8192;
  family.defaults.tied = true;
  family.defaults.pad = 0;
  family.traits.norm = NormKind::rms_one_plus;
  family.traits.activation = Activation::gelu_tanh;
  family.traits.scaled_embedding = true;
  family.activations = {"gelu_pytorch_tanh", "gelu"};
  family.read = gemma_read;
  family.print = gemma_print;
  return family;
}

} // namespace troupe
