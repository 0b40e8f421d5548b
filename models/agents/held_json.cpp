#include "models/agents/held_json.hpp"

#include <nlohmann/json.hpp>

namespace troupe::models {

HeldJson::HeldJson(nlohmann::ordered_json value)
  : value_(std::make_shared<const nlohmann::ordered_json>(std::move(value))) {}

const nlohmann::ordered_json& HeldJson::operator*() const {
  static const nlohmann::ordered_json nothing;
  return value_ ? *value_ : nothing;
}

} // namespace troupe::models
