// UTF-8 as data: validation, cutting into code points, and the replacement of
// broken bytes as Hugging Face's decoders do it (U+FFFD per maximal subpart).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace troupe::models::internal {

/// Place of the first byte that is not UTF-8, or npos.
std::size_t first_invalid_utf8(std::string_view text) noexcept;

/// What stands at `text[at]`.
struct CodePoint {
  char32_t value = 0;
  std::size_t size = 1; ///< bytes; for a broken sequence its maximal subpart
  bool valid = false;
  bool cut = false; ///< broken only because the text ends here
};
CodePoint code_point_at(std::string_view text, std::size_t at) noexcept;

void append_utf8(std::string& out, char32_t value);

/// Every maximal broken subpart becomes one U+FFFD.
std::string replace_invalid_utf8(std::string_view text);

} // namespace troupe::models::internal
