// Parses expressions of a template, with Jinja's precedence.
#pragma once

#include "models/text/jinja/syntax.hpp"
#include "models/text/jinja/token_reader.hpp"

namespace troupe::models::jinja {

/// Parses one expression, including `a if b else c`.
ExpressionPtr parse_expression(TokenReader& tokens);
/// Parses an expression without `if`: the iterable of a loop.
ExpressionPtr parse_without_condition(TokenReader& tokens);
/// Parses a, b, ... as a list; a single expression as itself.
ExpressionPtr parse_tuple(TokenReader& tokens);
/// Parses the filters of a block: name(arguments) | ... of what it prints.
ExpressionPtr parse_block_filters(TokenReader& tokens);

} // namespace troupe::models::jinja
