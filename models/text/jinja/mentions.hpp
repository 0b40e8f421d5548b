// Finds which names a part of a template reads: a macro has `caller`,
// `varargs` and `kwargs` only if its body mentions them.
#pragma once

#include "models/text/jinja/syntax.hpp"

#include <string_view>

namespace troupe::models::jinja {

/// Returns whether an expression in `body`, however deep, is the name.
bool mentions(const Body& body, std::string_view name);

} // namespace troupe::models::jinja
