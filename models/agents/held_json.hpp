// A JSON value that a struct in a header can hold: it never changes, and copies
// share it.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <memory>

namespace troupe::models {

class HeldJson {
public:
  HeldJson() = default; ///< null
  HeldJson(nlohmann::ordered_json value);

  const nlohmann::ordered_json& operator*() const;
  const nlohmann::ordered_json* operator->() const {
    return &**this;
  }

private:
  std::shared_ptr<const nlohmann::ordered_json> value_;
};

} // namespace troupe::models
