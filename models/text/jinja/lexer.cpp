#include "models/text/jinja/lexer.hpp"

#include "models/io/utf8.hpp"
#include "models/text/jinja/value.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

namespace troupe::models::jinja {

namespace {

bool lexer_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}
bool lexer_digit(char c) {
  return c >= '0' && c <= '9';
}
bool lexer_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'
         || lexer_digit(c);
}

/// Converts line ends to \n and removes one at the very end, as Jinja does.
std::string plain_line_ends(const std::string& source) {
  std::string out;
  out.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r')
      out += source[i];
    else if (i + 1 == source.size() || source[i + 1] != '\n')
      out += '\n';
  }
  if (out.ends_with('\n'))
    out.pop_back();
  return out;
}

class Lexer {
public:
  explicit Lexer(std::string source) : source_(std::move(source)) {}

  std::vector<Token> run() {
    while (at_ < source_.size())
      section();
    push(TokenKind::end, "");
    return std::move(tokens_);
  }

private:
  std::string_view rest() const {
    return std::string_view(source_).substr(at_);
  }
  void push(TokenKind kind, std::string text) {
    tokens_.push_back({kind, std::move(text), line_});
  }
  void skip(std::size_t count) {
    line_
      += static_cast<int>(std::ranges::count(rest().substr(0, count), '\n'));
    at_ = std::min(at_ + count, source_.size());
  }
  void skip_spaces() {
    std::size_t count = 0;
    while (count < rest().size() && lexer_space(rest()[count]))
      ++count;
    skip(count);
  }

  /// Reads text up to the next tag, then the tag.
  void section() {
    std::size_t begin = source_.find('{', at_);
    while (begin < source_.size()
           && (begin + 1 == source_.size()
               || std::string_view("{%#").find(source_[begin + 1])
                    == std::string_view::npos))
      begin = source_.find('{', begin + 1);
    begin = std::min(begin, source_.size());
    std::string text = source_.substr(at_, begin - at_);
    const bool tag = begin < source_.size();
    const char kind = tag ? source_[begin + 1] : ' ';
    const char sign
      = tag && begin + 2 < source_.size() ? source_[begin + 2] : ' ';
    const bool first_of_line = line_begins_;
    if (!text.empty())
      line_begins_ = text.back() == '\n';
    std::string shown = text;
    if (tag && sign == '-')
      strip_right(shown);
    else if (tag && kind != '{' && sign != '+')
      strip_line(shown, first_of_line);
    if (!shown.empty())
      push(TokenKind::text, shown);
    skip(text.size());
    if (!tag)
      return;
    skip(sign == '-' || (sign == '+' && kind != '{') ? 3 : 2);
    if (kind == '#')
      comment();
    else
      expression(kind == '%');
  }

  static void strip_right(std::string& text) {
    while (!text.empty() && lexer_space(text.back()))
      text.pop_back();
  }
  /// Implements lstrip_blocks: removes a line's blanks before a tag.
  static void strip_line(std::string& text, bool first_of_line) {
    const std::size_t end = text.rfind('\n');
    const std::size_t begin = end == std::string::npos ? 0 : end + 1;
    const bool blank
      = std::all_of(text.begin() + static_cast<std::ptrdiff_t>(begin),
                    text.end(), lexer_space);
    if (blank && (begin > 0 || first_of_line))
      text.resize(begin);
  }

  void comment() {
    const std::size_t end = source_.find("#}", at_);
    if (end == std::string::npos)
      throw TemplateError("a comment '{#' is not closed", line_);
    const char sign = end > at_ ? source_[end - 1] : ' ';
    skip(end + 2 - at_);
    after_block(sign);
  }

  /// Skips white space after a block's end.
  void after_block(char sign) {
    const std::size_t before = at_;
    if (sign == '-')
      skip_spaces();
    else if (sign != '+' && rest().starts_with('\n'))
      skip(1);
    line_begins_ = at_ > before && source_[at_ - 1] == '\n';
  }

  void expression(bool block) {
    const int opened = line_;
    push(block ? TokenKind::block_begin : TokenKind::print_begin, "");
    depth_ = 0;
    for (;;) {
      skip_spaces();
      if (at_ >= source_.size())
        throw TemplateError(block ? "a tag '{%' is not closed"
                                  : "a tag '{{' is not closed",
                            opened);
      if (depth_ == 0 && closes(block))
        return;
      token();
    }
  }

  bool closes(bool block) {
    const std::string_view end = block ? "%}" : "}}";
    const bool signed_end
      = (rest().front() == '-' || (block && rest().front() == '+'))
        && rest().substr(1).starts_with(end);
    if (!signed_end && !rest().starts_with(end))
      return false;
    const char sign = signed_end ? rest().front() : ' ';
    push(block ? TokenKind::block_end : TokenKind::print_end, "");
    skip(signed_end ? 3 : 2);
    if (block) {
      after_block(sign);
    } else {
      line_begins_ = false;
      if (sign == '-')
        after_block(sign);
    }
    return true;
  }

  void token() {
    const char c = rest().front();
    if (c == '"' || c == '\'')
      string(c);
    else if (lexer_digit(c))
      number();
    else if (lexer_name(c))
      take_while(TokenKind::name);
    else
      op();
  }

  void take_while(TokenKind kind) {
    std::size_t count = 0;
    while (count < rest().size() && lexer_name(rest()[count]))
      ++count;
    push(kind, std::string(rest().substr(0, count)));
    skip(count);
  }

  /// Returns the size of "e-12" at `at` of the rest; 0: there is none.
  std::size_t exponent_size(std::size_t at) const {
    const std::string_view text = rest().substr(at);
    if (!text.starts_with('e') && !text.starts_with('E'))
      return 0;
    std::size_t count
      = text.size() > 1 && (text[1] == '+' || text[1] == '-') ? 2 : 1;
    const std::size_t begin = count;
    while (count < text.size() && lexer_digit(text[count]))
      ++count;
    return count > begin ? count : 0;
  }

  void number() {
    std::size_t count = 0;
    const auto digits = [&] {
      while (count < rest().size()
             && (lexer_digit(rest()[count]) || rest()[count] == '_'))
        ++count;
    };
    digits();
    bool real = false;
    if (count + 1 < rest().size() && rest()[count] == '.'
        && lexer_digit(rest()[count + 1])) {
      real = true;
      ++count;
      digits();
    }
    if (const std::size_t size = exponent_size(count); size > 0) {
      real = true;
      count += size;
    }
    std::string text(rest().substr(0, count));
    std::erase(text, '_');
    push(real ? TokenKind::real : TokenKind::integer, text);
    skip(count);
  }

  void op() {
    static constexpr std::array<std::string_view, 28> known{
      "**", "//", "==", "!=", "<=", ">=", "+", "-", "*", "/",
      "%",  "~",  "<",  ">",  "=",  ".",  ":", "|", ",", ";",
      "(",  ")",  "[",  "]",  "{",  "}",  "!", "?"};
    for (const std::string_view text : known)
      if (rest().starts_with(text)) {
        const char c = text[0];
        depth_ += c == '(' || c == '[' || c == '{' ? 1 : 0;
        depth_ -= (c == ')' || c == ']' || c == '}') && depth_ > 0 ? 1 : 0;
        push(TokenKind::op, std::string(text));
        skip(text.size());
        return;
      }
    throw TemplateError("unexpected character '"
                          + std::string(rest().substr(
                            0, internal::code_point_at(source_, at_).size))
                          + "'",
                        line_);
  }

  void string(char quote) {
    const int opened = line_;
    std::string text;
    std::size_t at = at_ + 1;
    while (at < source_.size() && source_[at] != quote) {
      if (source_[at] == '\\' && at + 1 < source_.size())
        at = escape(at + 1, text);
      else
        text += source_[at++];
    }
    if (at >= source_.size())
      throw TemplateError("a string is not closed", opened);
    push(TokenKind::string, std::move(text));
    skip(at + 1 - at_);
  }

  /// Appends the character of the escape at `at` (after the backslash); returns
  /// the offset after it.
  std::size_t escape(std::size_t at, std::string& text) const {
    static constexpr std::string_view names = "nrtbfva0\\'\"";
    static constexpr std::string_view values("\n\r\t\b\f\v\a\0\\'\"", 11);
    const char c = source_[at];
    if (const auto known = names.find(c); known != std::string_view::npos) {
      text += values[known];
      return at + 1;
    }
    if (c == '\n')
      return at + 1;
    const std::size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    std::uint32_t code = 0;
    const char* begin = source_.data() + at + 1;
    const bool whole = digits > 0 && at + 1 + digits <= source_.size()
                       && std::from_chars(begin, begin + digits, code, 16).ptr
                            == begin + digits;
    if (!whole || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) {
      text += '\\'; // Python keeps unknown escapes
      text += c;
      return at + 1;
    }
    internal::append_utf8(text, code);
    return at + 1 + digits;
  }

  std::string source_;
  std::size_t at_ = 0;
  int line_ = 1;
  int depth_ = 0;
  bool line_begins_ = true;
  std::vector<Token> tokens_;
};

} // namespace

std::vector<Token> tokenize(const std::string& source) {
  return Lexer(plain_line_ends(source)).run();
}

} // namespace troupe::models::jinja
