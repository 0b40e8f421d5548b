#include "config/model/family.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace troupe {

const std::vector<Family>& families() {
  static const std::vector<Family> all{
    llama_family(),   qwen2_family(),     qwen3_family(),   qwen3_moe_family(),
    mistral_family(), ministral_family(), mixtral_family(), gemma_family(),
    gemma2_family(),  gemma3_family(),    gpt2_family(),    gpt_neox_family(),
    granite_family(), phi3_family(),      smollm3_family(), olmo2_family(),
    olmo3_family(),   glm_family(),       glm4_family(),    glm4_moe_family(),
    olmoe_family()};
  return all;
}

const Family* find_family(const std::string& name) {
  const auto found = std::ranges::find(families(), name, &Family::name);
  return found == families().end() ? nullptr : &*found;
}

const std::vector<std::string>& model_families() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Family& family : families())
      all.push_back(family.name);
    return all;
  }();
  return names;
}

void read_layer_types(const HfObject& config, ModelShape& shape,
                      const std::function<bool(std::int64_t layer)>& windowed) {
  const HfJson* given = config.find("layer_types");
  const auto layers = static_cast<std::size_t>(shape.num_layers);
  shape.windowed_layers.assign(layers, false);
  if (given && (!given->is_array() || given->size() != layers))
    config.fail("layer_types", "one entry a layer");
  for (std::size_t i = 0; i < layers; ++i) {
    bool in_window = windowed(static_cast<std::int64_t>(i));
    if (given) {
      in_window = given->at(i) == "sliding_attention";
      if (!in_window && given->at(i) != "full_attention")
        config.fail("layer_types",
                    "\"full_attention\" or \"sliding_attention\" for each "
                    "layer");
    }
    shape.windowed_layers[i] = in_window;
  }
}

void print_layer_types(const ModelShape& shape, HfJson& config) {
  HfJson types = HfJson::array();
  for (const bool windowed : shape.windowed_layers)
    types.push_back(windowed ? "sliding_attention" : "full_attention");
  config["layer_types"] = types;
}

void print_sliding_window(const ModelShape& shape, HfJson& config) {
  if (shape.sliding_window > 0)
    config["sliding_window"] = shape.sliding_window;
  else
    config["sliding_window"] = nullptr;
}

void print_query_scalar(const ModelShape& shape, HfJson& config) {
  // transformers 5 refuses a number that is not written as a whole number
  const auto whole = static_cast<std::int64_t>(shape.multipliers.query_scalar);
  if (static_cast<double>(whole) == shape.multipliers.query_scalar)
    config["query_pre_attn_scalar"] = whole;
  else
    config["query_pre_attn_scalar"] = shape.multipliers.query_scalar;
}

} // namespace troupe
