// GLM-4.5: experts that a sigmoid scores and a correction balances, an MLP for
// all tokens beside them, and dense first layers; half of each head is rotated.
#include "config/model/families/expert_keys.hpp"
#include "config/model/family.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace troupe {

namespace {

/// Reads a number that may be 0.
std::int64_t count_or(const HfObject& config, const char* key,
                      std::int64_t fallback, std::int64_t most) {
  const HfJson* found = config.find(key);
  return found && *found == 0 ? 0 : config.size(key, fallback, most);
}

void read_groups(const HfObject& config, ExpertShape& experts) {
  RouterRule& router = experts.router;
  router.groups = config.size("n_group", 1, experts.count);
  router.chosen_groups = config.size("topk_group", 1, router.groups);
  if (experts.count % router.groups != 0)
    config.fail("n_group", "a divisor of the number of experts");
  const std::int64_t group = experts.count / router.groups;
  if (router.groups > 1 && group < 2)
    config.fail("n_group", "groups of two experts or more");
  if (experts.per_token > router.chosen_groups * group)
    config.fail("topk_group", "groups with num_experts_per_tok experts");
}

void glm4_moe_read(const HfObject& config, ModelShape& shape) {
  shape.attention_bias = config.flag("attention_bias", false);
  if (config.flag("use_qk_norm", false))
    shape.qk_norm = QkNormScope::head;
  read_experts(config, "n_routed_experts", "moe_intermediate_size",
               {.count = 128, .per_token = 8, .width = 1408}, shape);
  ExpertShape& experts = shape.experts;
  experts.shared_width
    = experts.width * config.size("n_shared_experts", 1, 1024);
  experts.router.score = RouterScore::sigmoid;
  experts.router.corrected = true;
  experts.router.scale = config.positive("routed_scaling_factor", 1);
  read_groups(config, experts);
  const std::int64_t dense
    = count_or(config, "first_k_dense_replace", 1, shape.num_layers);
  if (dense == 0)
    return;
  experts.dense_layers.assign(static_cast<std::size_t>(shape.num_layers),
                              false);
  std::fill_n(experts.dense_layers.begin(), dense, true);
}

void glm4_moe_print(const ModelShape& shape, HfJson& config) {
  const ExpertShape& experts = shape.experts;
  config["attention_bias"] = shape.attention_bias;
  config["use_qk_norm"] = shape.qk_norm == QkNormScope::head;
  print_experts(shape, "n_routed_experts", "moe_intermediate_size", config);
  config["n_shared_experts"] = experts.shared_width / experts.width;
  config["routed_scaling_factor"] = experts.router.scale;
  config["n_group"] = experts.router.groups;
  config["topk_group"] = experts.router.chosen_groups;
  config["first_k_dense_replace"]
    = std::ranges::count(experts.dense_layers, true);
  // its module that predicts a second token is not read
  config["num_nextn_predict_layers"] = 0;
}

} // namespace

Family glm4_moe_family() {
  Family family;
  family.name = "glm4_moe";
  family.causal_class = "Glm4MoeForCausalLM";
  family.classifier_class = "Glm4MoeForSequenceClassification";
  family.defaults.kv_heads = 8;
  family.defaults.positions = 131072;
  family.defaults.norm_eps = 1e-5;
  family.defaults.rotated_share = 0.5;
  family.rotates_part = true;
  family.read = glm4_moe_read;
  family.print = glm4_moe_print;
  family.stored = router_stored_as_gate;
  return family;
}

} // namespace troupe
