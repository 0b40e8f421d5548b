#include "models/text/tokenizer/precompiled.hpp"

#include "config/base/base64.hpp"
#include "models/io/utf8.hpp"

#include <utf8proc.h>

#include <cstring>

namespace troupe::models::tokenizer {

namespace {

constexpr std::size_t longest_grapheme = 5; // bytes that are looked up whole

/// One element of Darts-clone's array.
struct TrieUnit {
  std::uint32_t bits;

  bool has_leaf() const {
    return (bits >> 8U & 1U) != 0;
  }
  std::size_t value() const {
    return bits & 0x7FFFFFFFU;
  }
  std::uint32_t label() const {
    return bits & 0x800000FFU;
  }
  std::size_t offset() const {
    return static_cast<std::size_t>(bits >> 10U) << ((bits & 0x200U) >> 6U);
  }
};

} // namespace

Precompiled::Precompiled(const internal::JsonAt& charsmap) {
  const auto decoded = from_base64(charsmap.text());
  if (!decoded)
    charsmap.expected("base64");
  const std::string& bytes = *decoded;
  std::uint32_t size = 0;
  if (bytes.size() >= sizeof(size))
    std::memcpy(&size, bytes.data(), sizeof(size));
  if (size == 0 || size % sizeof(std::uint32_t) != 0
      || size > bytes.size() - sizeof(size))
    charsmap.expected("a table of SentencePiece");
  units_.resize(size / sizeof(std::uint32_t));
  std::memcpy(units_.data(), bytes.data() + sizeof(size), size);
  replacements_ = bytes.substr(sizeof(size) + size);
}

std::optional<std::string_view>
Precompiled::replacement(std::string_view chunk) const {
  std::size_t at = TrieUnit{units_.front()}.offset();
  for (const char c : chunk) {
    const auto byte = static_cast<unsigned char>(c);
    at ^= byte;
    if (byte == 0 || at >= units_.size())
      return std::nullopt;
    const TrieUnit unit{units_[at]};
    if (unit.label() != byte)
      return std::nullopt;
    at ^= unit.offset();
    if (!unit.has_leaf())
      continue;
    if (at >= units_.size())
      return std::nullopt;
    const std::size_t first = TrieUnit{units_[at]}.value();
    if (first > replacements_.size())
      return std::nullopt;
    const std::string_view rest = std::string_view(replacements_).substr(first);
    return rest.substr(0, rest.find('\0'));
  }
  return std::nullopt;
}

void Precompiled::append(std::string_view grapheme, std::string& out) const {
  if (grapheme.size() <= longest_grapheme)
    if (const auto found = replacement(grapheme)) {
      out += *found;
      return;
    }
  for (std::size_t at = 0; at < grapheme.size();) {
    const std::string_view character
      = grapheme.substr(at, internal::code_point_at(grapheme, at).size);
    out += replacement(character).value_or(character);
    at += character.size();
  }
}

std::string Precompiled::apply(std::string_view text) const {
  std::string out;
  out.reserve(text.size());
  std::size_t begin = 0;
  utf8proc_int32_t state = 0;
  std::optional<utf8proc_int32_t> before;
  for (std::size_t at = 0; at < text.size();) {
    const auto point = internal::code_point_at(text, at);
    const auto value = static_cast<utf8proc_int32_t>(point.value);
    if (before && utf8proc_grapheme_break_stateful(*before, value, &state)) {
      append(text.substr(begin, at - begin), out);
      begin = at;
    }
    before = value;
    at += point.size;
  }
  append(text.substr(begin), out);
  return out;
}

} // namespace troupe::models::tokenizer
