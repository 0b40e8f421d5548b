// GLM-4 before April 2025 (`glm`): LLaMA with biases on queries, keys and
// values, gate and up in one tensor, and rotations of neighbouring dimensions
// of half of each head. Pairs are taken apart when weights are read and put
// together when they are written, so that the stack rotates halves as
// everywhere.
#include "config/model/families/glm.hpp"

#include "config/model/families/joined_gate_up.hpp"

#include <nlohmann/json.hpp>

namespace troupe {

StoredAs glm_stored(const ModelShape& shape, const ParameterShape& parameter) {
  for (const char* rotated : {".q_proj.", ".k_proj."})
    if (parameter.name.find(rotated) != std::string::npos)
      return {.name = parameter.name,
              .heads = {shape.head_dim, shape.head_dim,
                        shape.rope.rotated_dim(shape.head_dim)}};
  return stored_in_gate_up(shape, parameter);
}

Family glm_family() {
  Family family;
  family.name = "glm";
  family.causal_class = "GlmForCausalLM";
  family.classifier_class = "GlmForSequenceClassification";
  family.defaults.vocab_size = 151552;
  family.defaults.heads = 32;
  family.defaults.kv_heads = 2;
  family.defaults.head_dim = 128;
  family.defaults.positions = 131072;
  family.defaults.norm_eps = 1.5625e-7;
  family.defaults.rotated_share = 0.5;
  family.defaults.pad = 151329;
  family.rotates_part = true;
  family.traits.attention_bias = true;
  family.read = [](const HfObject& config, ModelShape& shape) {
    shape.attention_bias = config.flag("attention_bias", true);
  };
  family.print = [](const ModelShape& shape, HfJson& config) {
    config["attention_bias"] = shape.attention_bias;
  };
  family.stored = glm_stored;
  return family;
}

} // namespace troupe
