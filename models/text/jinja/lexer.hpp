// Splits a template's text into tokens, with Jinja's rules for white space
// around tags (trim_blocks and lstrip_blocks are on, as in Hugging Face).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::models::jinja {

enum class TokenKind : std::uint8_t {
  text,        ///< text outside tags
  print_begin, ///< {{
  print_end,
  block_begin, ///< {%
  block_end,
  name,
  string, ///< without quotes, escapes resolved
  integer,
  real,
  op, ///< operators and brackets
  end,
};

struct Token {
  TokenKind kind = TokenKind::end;
  std::string text;
  int line = 1;
};

/// Returns the tokens, the last of which is `end`. Throws TemplateError for an
/// unclosed tag or a character that is not part of the language.
std::vector<Token> tokenize(const std::string& source);

} // namespace troupe::models::jinja
