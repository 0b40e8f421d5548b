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

constexpr std::array<MissingTrait, 1> missing_traits = {{
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
