#include "models/io/utf8.hpp"

#include <cstdint>

namespace troupe::models::internal {

namespace {

struct Utf8Lead {
  std::size_t size;                     ///< 0: not a lead byte
  std::uint8_t low = 0x80, high = 0xBF; ///< range of the second byte
};

Utf8Lead utf8_lead(std::uint8_t byte) noexcept {
  if (byte < 0x80)
    return {1};
  if (byte >= 0xC2 && byte <= 0xDF)
    return {2};
  if (byte == 0xE0)
    return {3, 0xA0, 0xBF};
  if (byte == 0xED) // surrogates
    return {3, 0x80, 0x9F};
  if (byte >= 0xE1 && byte <= 0xEF)
    return {3};
  if (byte == 0xF0)
    return {4, 0x90, 0xBF};
  if (byte >= 0xF1 && byte <= 0xF3)
    return {4};
  if (byte == 0xF4)
    return {4, 0x80, 0x8F};
  return {0};
}

} // namespace

CodePoint code_point_at(std::string_view text, std::size_t at) noexcept {
  const auto byte
    = [&](std::size_t i) { return static_cast<std::uint8_t>(text[at + i]); };
  const Utf8Lead lead = utf8_lead(byte(0));
  if (lead.size == 1)
    return {byte(0), 1, true, false};
  if (lead.size == 0)
    return {0xFFFD, 1, false, false};
  char32_t value = byte(0) & (0x7FU >> lead.size);
  for (std::size_t i = 1; i < lead.size; ++i) {
    if (at + i >= text.size())
      return {0xFFFD, i, false, true};
    const std::uint8_t low = i == 1 ? lead.low : 0x80;
    const std::uint8_t high = i == 1 ? lead.high : 0xBF;
    if (byte(i) < low || byte(i) > high)
      return {0xFFFD, i, false, false};
    value = (value << 6) | (byte(i) & 0x3FU);
  }
  return {value, lead.size, true, false};
}

std::size_t first_invalid_utf8(std::string_view text) noexcept {
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = code_point_at(text, at);
    if (!point.valid)
      return at;
    at += point.size;
  }
  return std::string_view::npos;
}

void append_utf8(std::string& out, char32_t value) {
  const auto tail = [&](unsigned shift) {
    out += static_cast<char>(0x80 | ((value >> shift) & 0x3F));
  };
  if (value < 0x80) {
    out += static_cast<char>(value);
  } else if (value < 0x800) {
    out += static_cast<char>(0xC0 | (value >> 6));
    tail(0);
  } else if (value < 0x10000) {
    out += static_cast<char>(0xE0 | (value >> 12));
    tail(6);
    tail(0);
  } else {
    out += static_cast<char>(0xF0 | (value >> 18));
    tail(12);
    tail(6);
    tail(0);
  }
}

std::string replace_invalid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = code_point_at(text, at);
    if (point.valid)
      out.append(text.substr(at, point.size));
    else
      out += "\xEF\xBF\xBD";
    at += point.size;
  }
  return out;
}

} // namespace troupe::models::internal
