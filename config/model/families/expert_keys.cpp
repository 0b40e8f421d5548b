#include "config/model/families/expert_keys.hpp"

#include "config/model/families/renamed.hpp"

#include <nlohmann/json.hpp>

#include <array>

namespace troupe {

namespace {

constexpr std::int64_t experts_limit = 4096;

constexpr std::array<Rename, 2> router_names = {{
  {"router.weight", "gate.weight"},
  {"router.correction", "gate.e_score_correction_bias"},
}};

} // namespace

void read_experts(const HfObject& config, const char* count_key,
                  const char* width_key, const ExpertShape& absent,
                  ModelShape& shape) {
  ExpertShape& experts = shape.experts;
  const char* count = config.find(count_key) ? count_key : "num_local_experts";
  experts.count = config.size(count, absent.count, experts_limit);
  experts.per_token
    = config.size("num_experts_per_tok", absent.per_token, experts.count);
  experts.width = config.size(width_key, absent.width);
  experts.router.renormalized
    = config.flag("norm_topk_prob", absent.router.renormalized);
}

void print_experts(const ModelShape& shape, const char* count_key,
                   const char* width_key, HfJson& config) {
  const ExpertShape& experts = shape.experts;
  config[count_key] = experts.count;
  config["num_experts_per_tok"] = experts.per_token;
  config[width_key] = experts.width;
  config["norm_topk_prob"] = experts.router.renormalized;
  config["output_router_logits"] = false;
}

StoredAs router_stored_as_gate(const ModelShape&,
                               const ParameterShape& parameter) {
  std::string name = renamed(parameter.name, router_names);
  return name == parameter.name ? StoredAs{} : StoredAs{.name = name};
}

} // namespace troupe
