#include "models/text/jinja/token_reader.hpp"

#include "models/text/jinja/value.hpp"

namespace troupe::models::jinja {

Token TokenReader::take() {
  Token token = peek();
  at_ += at_ + 1 < tokens_.size() ? 1 : 0;
  return token;
}

bool TokenReader::is_op(std::string_view text) const {
  return peek().kind == TokenKind::op && peek().text == text;
}

bool TokenReader::is_name(std::string_view text) const {
  return peek().kind == TokenKind::name && peek().text == text;
}

bool TokenReader::skip_op(std::string_view text) {
  const bool found = is_op(text);
  if (found)
    take();
  return found;
}

bool TokenReader::skip_name(std::string_view text) {
  const bool found = is_name(text);
  if (found)
    take();
  return found;
}

void TokenReader::need_op(std::string_view text) {
  if (!skip_op(text))
    fail("expected '" + std::string(text) + "'");
}

std::string TokenReader::need_name() {
  if (peek().kind != TokenKind::name)
    fail("expected a name");
  return take().text;
}

void TokenReader::fail(const std::string& what) const {
  const Token& token = peek();
  const bool shown = token.kind == TokenKind::op
                     || token.kind == TokenKind::name
                     || token.kind == TokenKind::integer;
  throw TemplateError(shown ? what + " (at '" + token.text + "')" : what,
                      token.line);
}

void TokenReader::doubt(std::string what) {
  doubts_.emplace_back(std::move(what), peek().line);
}

void TokenReader::forget_doubts(std::size_t from) {
  doubts_.resize(from);
}

void TokenReader::settle_doubts() const {
  if (!doubts_.empty())
    throw TemplateError(doubts_.front().first, doubts_.front().second);
}

} // namespace troupe::models::jinja
