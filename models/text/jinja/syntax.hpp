// The tree of a template: expressions and statements as plain structs.
#pragma once

#include "models/text/jinja/value.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace troupe::models::jinja {

struct Expression;
using ExpressionPtr = std::unique_ptr<Expression>;

enum class ExpressionKind : std::uint8_t {
  literal,   ///< value
  name,      ///< text
  list,      ///< parts
  tuple,     ///< parts
  dict,      ///< parts: key, value, key, value, ...
  attribute, ///< parts[0].text
  item,      ///< parts[0][parts[1]]
  slice,     ///< parts[0][parts[1]:parts[2]:parts[3]]; bounds may be null
  call,      ///< parts[0](arguments, named)
  filter,    ///< parts[0] | text(arguments, named)
  test,      ///< parts[0] is text(arguments, named)
  negate,    ///< -parts[0]
  plus,      ///< +parts[0]
  invert,    ///< not parts[0]
  both,      ///< parts[0] and parts[1]
  either,    ///< parts[0] or parts[1]
  compare,   ///< parts[0] ops[0] parts[1] ops[1] parts[2] ...
  binary,    ///< parts[0] text parts[1]
  condition, ///< parts[0] if parts[1] else parts[2], which may be null
  printed,   ///< what the body of the block printed, for its filters
};

struct Expression {
  ExpressionKind kind = ExpressionKind::literal;
  int line = 0;
  Value value;
  std::string text;
  std::vector<std::string> ops;
  std::vector<ExpressionPtr> parts;
  std::vector<ExpressionPtr> arguments;
  std::vector<std::pair<std::string, ExpressionPtr>> named;
};

struct Statement;
using Body = std::vector<Statement>;

enum class StatementKind : std::uint8_t {
  text,       ///< prints text
  print,      ///< prints value
  condition,  ///< branches (a null condition is else)
  loop,       ///< for names in value if filter: body, else otherwise
  set,        ///< names = value, or target.text = value
  capture,    ///< names[0] or target.text = what body prints, through filter
  macro,      ///< names[0](parameters): body
  call,       ///< value, a call, whose `caller` is the macro of this body
  filter,     ///< prints what body prints, through filter
  with,       ///< body with names that the `set`s in otherwise give
  generation, ///< body prints the assistant's text
  leave,      ///< break
  next,       ///< continue
};

struct Branch {
  ExpressionPtr condition;
  Body body;
};

struct Statement {
  StatementKind kind = StatementKind::text;
  int line = 0;
  std::string text;
  ExpressionPtr value;
  ExpressionPtr filter;
  std::vector<std::string> names;
  std::string target; ///< set: namespace whose member `text` is assigned
  std::vector<Branch> branches;
  Body body;
  Body otherwise;
  std::vector<std::pair<std::string, ExpressionPtr>> parameters;
  std::vector<std::string> mentioned; ///< of caller, varargs, kwargs, in body
};

/// Parses a template. Throws TemplateError with the line for constructs outside
/// the language or the supported subset.
Body parse_template(const std::string& source);

} // namespace troupe::models::jinja
