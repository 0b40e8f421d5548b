// OLMoE: experts in every layer, weighted by a softmax over all of them, and
// norms of queries and keys over all heads of a token.
#include "config/model/families/expert_keys.hpp"
#include "config/model/family.hpp"

#include <nlohmann/json.hpp>

namespace troupe {

namespace {

void olmoe_read(const HfObject& config, ModelShape& shape) {
  shape.attention_bias = config.flag("attention_bias", false);
  shape.output_bias = shape.attention_bias;
  if (config.find("clip_qkv"))
    config.fail("clip_qkv", "null: Troupe does not clip queries and keys");
  read_experts(config, "num_experts", "intermediate_size",
               {.count = 64,
                .per_token = 8,
                .width = 2048,
                .router = {.renormalized = false}},
               shape);
}

void olmoe_print(const ModelShape& shape, HfJson& config) {
  config["attention_bias"] = shape.attention_bias;
  print_experts(shape, "num_experts", "intermediate_size", config);
}

} // namespace

Family olmoe_family() {
  Family family;
  family.name = "olmoe";
  family.causal_class = "OlmoeForCausalLM";
  family.classifier_class = "OlmoeForSequenceClassification";
  family.defaults.positions = 4096;
  family.defaults.norm_eps = 1e-5;
  family.defaults.pad = 1;
  family.traits.qk_norm = QkNormScope::all_heads;
  family.read = olmoe_read;
  family.print = olmoe_print;
  family.stored = router_stored_as_gate;
  return family;
}

} // namespace troupe
