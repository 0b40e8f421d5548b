// Regular expressions of tokenizer.json over PCRE2. They are written for
// Oniguruma; escapes that PCRE2 interprets differently (\s, \w, \h) are
// translated, and constructs that it cannot express (class intersections) are
// refused instead of misread.
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
  /// Compiles a pattern. Throws std::invalid_argument with the reason and the
  /// offset in the pattern.
  explicit Regex(const std::string& pattern);

  /// Returns true if the pattern matches anywhere, including an empty match;
  /// texts and errors as for `matches`.
  bool occurs_in(std::string_view text) const;

  /// Returns all non-empty matches from left to right. `text` is valid UTF-8.
  /// Throws std::runtime_error if the pattern exceeds its limits.
  std::vector<Range> matches(std::string_view text) const;

private:
  std::shared_ptr<const void> code_; ///< pcre2_code, shared by copies
};

/// Returns the pattern in PCRE2's syntax. Throws std::invalid_argument if there
/// is no equivalent.
std::string translate_pattern(const std::string& pattern);

/// Returns a pattern that matches the text literally.
std::string literal_pattern(const std::string& text);

} // namespace troupe::models::tokenizer
