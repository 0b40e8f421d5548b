#include "config/base/base64.hpp"

#include <cstdint>

namespace troupe {

namespace {

constexpr std::string_view base64_letters
  = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

} // namespace

std::string to_base64(std::string_view bytes) {
  const auto at = [&](std::size_t i) {
    return i < bytes.size() ? static_cast<unsigned char>(bytes[i]) : 0U;
  };
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const auto group = at(i) << 16U | at(i + 1) << 8U | at(i + 2);
    for (const unsigned shift : {18U, 12U, 6U, 0U})
      text += base64_letters[group >> shift & 63U];
  }
  const auto padding = (3 - bytes.size() % 3) % 3;
  text.replace(text.size() - padding, padding, padding, '=');
  return text;
}

std::optional<std::string> from_base64(std::string_view text) {
  constexpr unsigned bits_of_letter = 6, bits_of_byte = 8;
  while (text.ends_with('='))
    text.remove_suffix(1);
  std::string bytes;
  bytes.reserve(text.size() * bits_of_letter / bits_of_byte);
  std::uint32_t bits = 0;
  unsigned count = 0;
  for (const char c : text) {
    const auto value = base64_letters.find(c);
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
