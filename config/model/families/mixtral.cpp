// Mixtral: Mistral with a mixture-of-experts MLP: a router selects the top k
// experts for each token, weighted by a softmax over those k.
#include "config/model/family.hpp"

#include <nlohmann/json.hpp>

#include <string_view>

namespace troupe {

namespace {

/// model.layers.0.mlp.experts.1.up_proj -> ...block_sparse_moe.experts.1.w3
StoredAs mixtral_stored(const ModelShape&, const ParameterShape& parameter) {
  std::string name = parameter.name;
  const auto replace = [&](std::string_view what, std::string_view with) {
    if (const auto at = name.find(what); at != std::string::npos)
      name.replace(at, what.size(), with);
  };
  replace(".mlp.", ".block_sparse_moe.");
  replace("gate_proj", "w1");
  replace("down_proj", "w2");
  replace("up_proj", "w3");
  replace(".router.", ".gate.");
  return {.name = name};
}

} // namespace

Family mixtral_family() {
  Family family;
  family.name = "mixtral";
  family.causal_class = "MixtralForCausalLM";
  family.classifier_class = "MixtralForSequenceClassification";
  family.defaults.kv_heads = 8;
  family.defaults.positions = 131072;
  family.defaults.norm_eps = 1e-5;
  family.defaults.rope_theta = 1e6;
  family.stored = mixtral_stored;
  family.read = [](const HfObject& config, ModelShape& shape) {
    if (config.find("sliding_window"))
      shape.sliding_window = config.size("sliding_window", 0);
    ExpertShape& experts = shape.experts;
    experts.count = config.size("num_local_experts", 8, 4096);
    experts.per_token = config.size("num_experts_per_tok", 2, experts.count);
    experts.width = shape.intermediate_size;
  };
  family.print = [](const ModelShape& shape, HfJson& config) {
    print_sliding_window(shape, config);
    config["num_local_experts"] = shape.experts.count;
    config["num_experts_per_tok"] = shape.experts.per_token;
    config["output_router_logits"] = false;
  };
  return family;
}

} // namespace troupe
