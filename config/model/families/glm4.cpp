// GLM-4-0414 (`glm4`): GLM with norms of the outputs of attention and MLP too,
// in other words than Gemma 2's.
#include "config/model/families/glm.hpp"
#include "config/model/families/renamed.hpp"

#include <array>

namespace troupe {

namespace {

constexpr std::array<Rename, 3> glm4_norms = {{
  {"post_attention_layernorm", "post_self_attn_layernorm"},
  {"pre_feedforward_layernorm", "post_attention_layernorm"},
  {"post_feedforward_layernorm", "post_mlp_layernorm"},
}};

StoredAs glm4_stored(const ModelShape& shape, const ParameterShape& parameter) {
  StoredAs stored = glm_stored(shape, parameter);
  if (stored.name.empty())
    stored.name = renamed(parameter.name, glm4_norms);
  return stored;
}

} // namespace

Family glm4_family() {
  Family family = glm_family();
  family.name = "glm4";
  family.causal_class = "Glm4ForCausalLM";
  family.classifier_class = "Glm4ForSequenceClassification";
  family.traits.norm_placement = NormPlacement::both;
  family.stored = glm4_stored;
  return family;
}

} // namespace troupe
