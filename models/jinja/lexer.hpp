// A template's text cut into tokens, with Jinja's rules for white space around
// tags (trim_blocks and lstrip_blocks are on, as Hugging Face has them).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::models::jinja {

enum class TokenKind : std::uint8_t {
  text,        ///< what stands outside of tags
  print_begin, ///< {{
  print_end,
  block_begin, ///< {%
  block_end,
  name,
  string, ///< quotes and escapes are taken away
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

/// Throws TemplateError for an unclosed tag or a character that is none of the
/// language's. The last token is `end`.
std::vector<Token> tokenize(const std::string& source);

} // namespace troupe::models::jinja
