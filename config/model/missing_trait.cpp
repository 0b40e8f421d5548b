#include "config/model/missing_trait.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace troupe {

namespace {

struct MissingTrait {
  std::string_view model_type;
  std::string_view trait;
};

constexpr std::array<MissingTrait, 6> missing_traits = {{
  {"ministral3", "queries that are scaled by their position"},
  {"gpt_oss", "attention sinks and experts with biases"},
  {"qwen3_next", "linear attention (gated delta networks)"},
  {"qwen2_moe", "a gate of the shared expert"},
  {"deepseek_v2", "multi-head latent attention (MLA)"},
  {"deepseek_v3", "multi-head latent attention (MLA)"},
}};

} // namespace

std::string missing_trait(const std::string& model_type) {
  const auto found = std::ranges::find(
    missing_traits, std::string_view(model_type), &MissingTrait::model_type);
  return found == missing_traits.end()
           ? ""
           : fmt::format("Troupe does not compute {} yet", found->trait);
}

} // namespace troupe
