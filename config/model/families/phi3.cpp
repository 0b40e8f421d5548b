// Phi-3 and Phi-4: LLaMA with queries, keys and values in one tensor of the
// checkpoint and gate and up in another, a window in all layers or none, and
// rotations of a part of each head (Phi-4-mini).
#include "config/model/families/joined_gate_up.hpp"
#include "config/model/families/renamed.hpp"
#include "config/model/family.hpp"

#include <nlohmann/json.hpp>

#include <array>

namespace troupe {

namespace {

constexpr std::array<const char*, 2> phi3_dropouts
  = {"embd_pdrop", "resid_pdrop"};

constexpr std::array<Rename, 3> phi3_attention
  = {{{"q_proj", "qkv_proj"}, {"k_proj", "qkv_proj"}, {"v_proj", "qkv_proj"}}};

StoredAs phi3_stored(const ModelShape& shape, const ParameterShape& parameter) {
  const std::int64_t queries = shape.num_heads * shape.head_dim;
  const std::int64_t keys = shape.num_kv_heads * shape.head_dim;
  const std::array<std::int64_t, 3> first = {0, queries, queries + keys};
  for (std::size_t i = 0; i < phi3_attention.size(); ++i)
    if (parameter.name.find(phi3_attention[i].ours) != std::string::npos)
      return {.name = renamed(parameter.name, phi3_attention),
              .first_row = first[i],
              .rows = queries + 2 * keys};
  return stored_in_gate_up(shape, parameter);
}

} // namespace

Family phi3_family() {
  Family family;
  family.name = "phi3";
  family.causal_class = "Phi3ForCausalLM";
  family.classifier_class = "Phi3ForSequenceClassification";
  family.keys.head_dim = "";
  family.defaults.positions = 4096;
  family.defaults.norm_eps = 1e-5;
  family.defaults.pad = 32000;
  family.rotates_part = true;
  family.stored = phi3_stored;
  family.read = [](const HfObject& config, ModelShape& shape) {
    if (config.find("sliding_window"))
      shape.sliding_window = config.size("sliding_window", 0);
  };
  family.print = [](const ModelShape& shape, HfJson& config) {
    for (const char* key : phi3_dropouts)
      config[key] = 0.0;
    print_sliding_window(shape, config);
  };
  return family;
}

} // namespace troupe
