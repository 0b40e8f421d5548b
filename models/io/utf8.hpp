// UTF-8 as data: validation, splitting into code points, and replacement of
// invalid bytes as in Hugging Face's decoders (U+FFFD per maximal subpart).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace troupe::models::internal {

/// Returns the offset of the first byte that is not valid UTF-8, or npos.
std::size_t first_invalid_utf8(std::string_view text) noexcept;

/// The code point at `text[at]`.
struct CodePoint {
  char32_t value = 0;
  std::size_t size = 1; ///< bytes; for an invalid sequence its maximal subpart
  bool valid = false;
  bool cut = false; ///< invalid only because the text ends here
};
CodePoint code_point_at(std::string_view text, std::size_t at) noexcept;

void append_utf8(std::string& out, char32_t value);

/// Replaces every maximal invalid subpart by one U+FFFD.
std::string replace_invalid_utf8(std::string_view text);

} // namespace troupe::models::internal
