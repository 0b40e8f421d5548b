#include "models/agents/shallow_json.hpp"

#include "config/base/json_levels.hpp"

#include <nlohmann/json.hpp>

namespace troupe::models {

nlohmann::ordered_json parse_shallow_json(std::string_view text) {
  if (nests_too_deep(text, most_json_depth))
    return nlohmann::ordered_json(nlohmann::ordered_json::value_t::discarded);
  return nlohmann::ordered_json::parse(text.begin(), text.end(), nullptr,
                                       /*allow_exceptions=*/false);
}

} // namespace troupe::models
