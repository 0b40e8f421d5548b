// The part of a str.format field after its colon: Python's "format
// specification mini-language".
#pragma once

#include "models/text/jinja/value.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace troupe::models::jinja {

struct FormatSpec {
  std::string fill; ///< one character; empty: a blank
  char align = 0;   ///< one of < > ^ =, or 0
  char sign = '-';  ///< one of + - and blank
  bool alternate = false;
  bool zeros = false; ///< a 0 before the width
  std::size_t width = 0;
  char grouping = 0; ///< , or _ or 0
  std::optional<int> precision;
  char type = 0;
};

/// TemplateError for what is no specification.
FormatSpec parse_format_spec(std::string_view text);
/// The value in that form; TemplateError where Python refuses it.
std::string formatted(const Value& value, const FormatSpec& spec);

} // namespace troupe::models::jinja
