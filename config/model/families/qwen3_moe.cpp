// Qwen3-MoE: Qwen3 with a mixture of experts in every layer, whose weights are
// a softmax over all experts, renormalized over the chosen ones or not.
#include "config/model/families/qwen_window.hpp"

#include <nlohmann/json.hpp>

#include <string_view>

namespace troupe {

namespace {

/// model.layers.0.mlp.router.weight -> model.layers.0.mlp.gate.weight
StoredAs qwen3_moe_stored(const ModelShape&, const ParameterShape& parameter) {
  constexpr std::string_view router = ".router.";
  std::string name = parameter.name;
  const auto at = name.find(router);
  if (at == std::string::npos)
    return {};
  return {.name = name.replace(at, router.size(), ".gate.")};
}

void qwen3_moe_read(const HfObject& config, ModelShape& shape) {
  shape.attention_bias = config.flag("attention_bias", false);
  shape.output_bias = shape.attention_bias;
  read_qwen_window(config, shape);
  if (config.find("decoder_sparse_step")
      && config.size("decoder_sparse_step", 0) != 1)
    config.fail("decoder_sparse_step", "1 (experts in every layer)");
  if (const HfJson* dense = config.find("mlp_only_layers");
      dense && !(dense->is_array() && dense->empty()))
    config.fail("mlp_only_layers", "[] (experts in every layer)");
  // transformers 5 saves the number under Mixtral's name
  const char* experts
    = config.find("num_experts") ? "num_experts" : "num_local_experts";
  shape.num_experts = config.size(experts, 128, 4096);
  shape.experts_per_token
    = config.size("num_experts_per_tok", 8, shape.num_experts);
  shape.renormalized_experts = config.flag("norm_topk_prob", false);
  shape.dense_intermediate_size = shape.intermediate_size;
  shape.intermediate_size = config.size("moe_intermediate_size", 768);
}

void qwen3_moe_print(const ModelShape& shape, HfJson& config) {
  config["attention_bias"] = shape.attention_bias;
  print_qwen_window(shape, config);
  config["intermediate_size"] = shape.dense_intermediate_size > 0
                                  ? shape.dense_intermediate_size
                                  : shape.intermediate_size;
  config["moe_intermediate_size"] = shape.intermediate_size;
  config["num_experts"] = shape.num_experts;
  config["num_experts_per_tok"] = shape.experts_per_token;
  config["norm_topk_prob"] = shape.renormalized_experts;
  config["decoder_sparse_step"] = 1;
  config["mlp_only_layers"] = HfJson::array();
  config["output_router_logits"] = false;
}

} // namespace

Family qwen3_moe_family() {
  Family family;
  family.name = "qwen3_moe";
  family.causal_class = "Qwen3MoeForCausalLM";
  family.classifier_class = "Qwen3MoeForSequenceClassification";
  family.defaults.kv_heads = 4;
  family.defaults.positions = 32768;
  family.traits.qk_norm = QkNormScope::head;
  family.read = qwen3_moe_read;
  family.print = qwen3_moe_print;
  family.stored = qwen3_moe_stored;
  return family;
}

} // namespace troupe
