#include "models/text/tokenizer/byte_level.hpp"

#include "models/io/utf8.hpp"

#include <array>

namespace troupe::models::tokenizer {

namespace {

constexpr bool shown_as_itself(unsigned byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC)
         || (byte >= 0xAE && byte <= 0xFF);
}

struct ByteAlphabet {
  std::array<char32_t, 256> character{};
  std::array<std::int16_t, 512> byte{}; ///< by character; -1: none

  constexpr ByteAlphabet() {
    byte.fill(-1);
    char32_t next = 256; // the others follow in order
    for (unsigned b = 0; b < 256; ++b) {
      character[b] = shown_as_itself(b) ? b : next++;
      byte[character[b]] = static_cast<std::int16_t>(b);
    }
  }
};

constexpr ByteAlphabet byte_alphabet;

} // namespace

char32_t byte_level_char(std::uint8_t byte) noexcept {
  return byte_alphabet.character[byte];
}

std::optional<std::string> byte_level_bytes(std::string_view token) {
  std::string out;
  out.reserve(token.size());
  for (std::size_t at = 0; at < token.size();) {
    const auto point = internal::code_point_at(token, at);
    if (!point.valid || point.value >= byte_alphabet.byte.size()
        || byte_alphabet.byte[point.value] < 0)
      return std::nullopt;
    out += static_cast<char>(byte_alphabet.byte[point.value]);
    at += point.size;
  }
  return out;
}

} // namespace troupe::models::tokenizer
