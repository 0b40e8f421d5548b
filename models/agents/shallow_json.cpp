#include "models/agents/shallow_json.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace troupe::models {

namespace {

/// Returns how deep lists and objects are nested; texts do not count.
int depth_of_json(std::string_view text) {
  int depth = 0;
  int most = 0;
  bool in_text = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"')
      in_text = !in_text;
    else if (in_text && c == '\\')
      ++i; // the next character is escaped
    else if (!in_text && (c == '[' || c == '{'))
      most = std::max(most, ++depth);
    else if (!in_text && (c == ']' || c == '}'))
      --depth;
  }
  return most;
}

} // namespace

nlohmann::ordered_json parse_shallow_json(std::string_view text) {
  if (depth_of_json(text) > most_json_depth)
    return nlohmann::ordered_json(nlohmann::ordered_json::value_t::discarded);
  return nlohmann::ordered_json::parse(text.begin(), text.end(), nullptr,
                                       /*allow_exceptions=*/false);
}

} // namespace troupe::models
