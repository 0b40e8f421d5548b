// Regular expressions of tokenizer.json over PCRE2. They are written for
// Oniguruma; what PCRE2 reads differently (\s, \w, \h) is translated, and what
// it cannot express (class intersections) is refused instead of misread.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::models::tokenizer {

/// [begin, end) in bytes.
using Range = std::pair<std::size_t, std::size_t>;

class Regex {
public:
  /// Throws std::invalid_argument with the reason and the place in the pattern.
  explicit Regex(const std::string& pattern);

  /// Whether the pattern matches anywhere, be it the empty text; texts and
  /// errors as of `matches`.
  bool occurs_in(std::string_view text) const;

  /// All matches from left to right, empty ones left out. `text` is valid
  /// UTF-8. Throws std::runtime_error when the pattern exceeds its limits.
  std::vector<Range> matches(std::string_view text) const;

private:
  std::shared_ptr<const void> code_; ///< pcre2_code, shared by copies
};

/// The pattern as PCRE2 must read it; std::invalid_argument if it cannot.
std::string translate_pattern(const std::string& pattern);

/// A pattern text in which every character stands for itself.
std::string literal_pattern(const std::string& text);

} // namespace troupe::models::tokenizer
