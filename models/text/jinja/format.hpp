// str.format of Python, which templates call as a text's method.
#pragma once

#include "models/text/jinja/value.hpp"

#include <string>

namespace troupe::models::jinja {

/// `pattern` with its fields {}, {0}, {name}, {0.a[b]!r:>8,.2f} replaced by the
/// arguments; TemplateError where Python refuses, or for what this subset does
/// not have.
std::string format_text(const std::string& pattern, const Arguments& arguments);

} // namespace troupe::models::jinja
