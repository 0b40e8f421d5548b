#include "config/base/base64.hpp"

#include <cstdint>

namespace troupe {

std::optional<std::string> from_base64(std::string_view text) {
  constexpr std::string_view letters
    = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  constexpr unsigned bits_of_letter = 6, bits_of_byte = 8;
  while (text.ends_with('='))
    text.remove_suffix(1);
  std::string bytes;
  bytes.reserve(text.size() * bits_of_letter / bits_of_byte);
  std::uint32_t bits = 0;
  unsigned count = 0;
  for (const char c : text) {
    const auto value = letters.find(c);
    if (value == std::string_view::npos)
      return std::nullopt;
    bits = bits << bits_of_letter | static_cast<std::uint32_t>(value);
    count += bits_of_letter;
    if (count >= bits_of_byte) {
      count -= bits_of_byte;
      bytes += static_cast<char>(bits >> count & 0xFFU);
    }
  }
  return bytes;
}

} // namespace troupe
