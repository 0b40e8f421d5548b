// Qwen3-MoE: Qwen3 with a mixture of experts instead of some or all layers'
// MLPs, whose weights are a softmax over all experts, renormalized over the
// chosen ones or not.
#include "config/model/families/expert_keys.hpp"
#include "config/model/families/qwen_window.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace troupe {

namespace {

/// Reads the layers without experts: those of `mlp_only_layers`, and all but
/// each `decoder_sparse_step`-th.
void read_dense_layers(const HfObject& config, ModelShape& shape) {
  const std::int64_t step = config.size("decoder_sparse_step", 1);
  std::vector<bool> dense(static_cast<std::size_t>(shape.num_layers), false);
  for (std::int64_t layer = 0; layer < shape.num_layers; ++layer)
    dense[static_cast<std::size_t>(layer)] = (layer + 1) % step != 0;
  const HfJson none = HfJson::array();
  const HfJson* found = config.find("mlp_only_layers");
  const HfJson& given = found ? *found : none;
  if (!given.is_array())
    config.fail("mlp_only_layers", "a list of layers");
  for (const HfJson& layer : given) {
    if (!layer.is_number_unsigned()
        || layer.get<std::uint64_t>()
             >= static_cast<std::uint64_t>(shape.num_layers))
      config.fail("mlp_only_layers", "numbers of layers, from 0");
    dense[layer.get<std::size_t>()] = true;
  }
  if (std::ranges::find(dense, true) != dense.end())
    shape.experts.dense_layers = std::move(dense);
}

void qwen3_moe_read(const HfObject& config, ModelShape& shape) {
  shape.attention_bias = config.flag("attention_bias", false);
  shape.output_bias = shape.attention_bias;
  read_qwen_window(config, shape);
  read_experts(config, "num_experts", "moe_intermediate_size",
               {.count = 128,
                .per_token = 8,
                .width = 768,
                .router = {.renormalized = false}},
               shape);
  read_dense_layers(config, shape);
}

void qwen3_moe_print(const ModelShape& shape, HfJson& config) {
  config["attention_bias"] = shape.attention_bias;
  print_qwen_window(shape, config);
  print_experts(shape, "num_experts", "moe_intermediate_size", config);
  config["decoder_sparse_step"] = 1;
  config["mlp_only_layers"] = HfJson::array();
  const std::vector<bool>& dense = shape.experts.dense_layers;
  for (std::size_t layer = 0; layer < dense.size(); ++layer)
    if (dense[layer])
      config["mlp_only_layers"].push_back(layer);
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
  family.stored = router_stored_as_gate;
  return family;
}

} // namespace troupe
