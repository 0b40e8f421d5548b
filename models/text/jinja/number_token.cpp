#include "models/text/jinja/number_token.hpp"

#include <charconv>

namespace troupe::models::jinja {

Value number_of(const Token& token) {
  const char* begin = token.text.data();
  const char* end = begin + token.text.size();
  if (token.kind == TokenKind::integer) {
    std::int64_t whole = 0;
    if (std::from_chars(begin, end, whole).ec != std::errc())
      throw TemplateError("the number " + token.text + " is too large",
                          token.line);
    return whole;
  }
  double real = 0;
  std::from_chars(begin, end, real);
  return real;
}

} // namespace troupe::models::jinja
