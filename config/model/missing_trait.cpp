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

constexpr const char* norms_of_outputs
  = "norms of the outputs of attention and MLP without any of their inputs, "
    "and of queries and keys over all heads together";
constexpr const char* interleaved_pairs
  = "rotations of neighbouring dimensions (interleaved pairs)";

constexpr std::array<MissingTrait, 6> missing_traits = {{
  {"olmo2", norms_of_outputs},
  {"olmo3", norms_of_outputs},
  {"gpt_neox",
   "attention and MLP that read the same input (a parallel residual), and "
   "queries, keys and values joined per head"},
  {"glm", interleaved_pairs},
  {"glm4", interleaved_pairs},
  {"ministral3", "queries that are scaled by their position"},
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
