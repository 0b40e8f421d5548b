#include "config/base/json_levels.hpp"

namespace troupe {

bool nests_too_deep(std::string_view text, std::size_t limit) {
  std::size_t level = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string && c == '\\')
      ++i; // an escaped character ends nothing
    else if (c == '"')
      in_string = !in_string;
    else if (!in_string && (c == '[' || c == '{') && ++level > limit)
      return true;
    else if (!in_string && (c == ']' || c == '}') && level > 0)
      --level;
  }
  return false;
}

} // namespace troupe
