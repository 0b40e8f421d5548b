// Expressions of a template from its tokens, with Jinja's precedence.
#pragma once

#include "models/jinja/syntax.hpp"
#include "models/jinja/token_reader.hpp"

namespace troupe::models::jinja {

/// One expression, `a if b else c` included.
ExpressionPtr parse_expression(TokenReader& tokens);
/// An expression without `if`: what a loop goes through.
ExpressionPtr parse_without_condition(TokenReader& tokens);
/// a, b, ..: a list of them; a single expression is itself.
ExpressionPtr parse_tuple(TokenReader& tokens);

} // namespace troupe::models::jinja
