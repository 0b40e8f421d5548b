// Converts the token of a number in a template to its value.
#pragma once

#include "models/text/jinja/lexer.hpp"
#include "models/text/jinja/value.hpp"

namespace troupe::models::jinja {

/// Throws TemplateError for whole numbers that are too large.
Value number_of(const Token& token);

} // namespace troupe::models::jinja
