// Reads tokens from left to right, with errors that name the line.
#pragma once

#include "models/text/jinja/lexer.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::models::jinja {

/// A position in a list of tokens; functions named `need_` throw TemplateError.
class TokenReader {
public:
  explicit TokenReader(std::vector<Token> tokens)
    : tokens_(std::move(tokens)) {}

  const Token& peek(std::size_t ahead = 0) const {
    const std::size_t last = tokens_.size() - 1;
    return tokens_[at_ + ahead < last ? at_ + ahead : last];
  }
  Token take();
  bool is_op(std::string_view text) const;
  bool is_name(std::string_view text) const;
  bool skip_op(std::string_view text); ///< true if it was skipped
  bool skip_name(std::string_view text);
  void need_op(std::string_view text);
  std::string need_name();
  [[noreturn]] void fail(const std::string& what) const;

  /// A mistake that counts only where it is known that it will be reached.
  void doubt(std::string what);
  std::size_t num_doubts() const {
    return doubts_.size();
  }
  void forget_doubts(std::size_t from);
  /// Throws TemplateError for the first doubt.
  void settle_doubts() const;

private:
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  std::vector<std::pair<std::string, int>> doubts_; ///< with their lines
};

} // namespace troupe::models::jinja
