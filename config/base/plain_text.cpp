#include "config/base/plain_text.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace troupe {

namespace {

bool is_control(unsigned char byte) {
  return byte < 0x20 || byte == 0x7f;
}

bool is_utf8(const std::string& text) {
  try {
    static_cast<void>(nlohmann::json(text).dump());
    return true;
  } catch (const nlohmann::json::type_error&) {
    return false;
  }
}

} // namespace

bool is_plain_text(const std::string& text) {
  return std::ranges::none_of(text, is_control) && is_utf8(text);
}

} // namespace troupe
