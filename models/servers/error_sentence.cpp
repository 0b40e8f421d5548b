#include "models/servers/error_sentence.hpp"

#include <nlohmann/json.hpp>

namespace troupe::models {

std::string error_sentence(std::string_view body) {
  using Json = nlohmann::json;
  constexpr std::size_t most_shown = 300;
  const auto answer = Json::parse(body, nullptr, /*allow_exceptions=*/false);
  if (answer.is_object())
    for (const auto* path : {"/error/message", "/error", "/detail", "/message"})
      if (const Json::json_pointer at(path);
          answer.contains(at) && answer.at(at).is_string())
        return answer.at(at).get<std::string>();
  return std::string(body.substr(0, most_shown));
}

} // namespace troupe::models
