#include "plans/foreign/shell_words.hpp"

#include <algorithm>
#include <cctype>

namespace troupe::plans {

bool is_name_letter(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_';
}

bool is_shell_name(std::string_view text) {
  return !text.empty() && std::isdigit(static_cast<unsigned char>(text[0])) == 0
         && std::ranges::all_of(text, is_name_letter);
}

bool is_unresolved(std::string_view text) {
  return text.starts_with('$');
}

namespace {

void append_part(std::vector<ShellWord>& words, bool& open,
                 const std::string& text, const Place& place) {
  if (!open)
    words.push_back({"", place});
  words.back().text += text;
  open = true;
}

void split_into(std::vector<ShellWord>& words, bool& open,
                const std::string& text, const Place& place) {
  std::string word;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const bool blank
      = i < text.size() && std::isspace(static_cast<unsigned char>(text[i]));
    const bool continued
      = i + 1 < text.size() && text[i] == '\\' && text[i + 1] == '\n';
    if (i < text.size() && !blank && !continued) {
      word += text[i];
      continue;
    }
    if (!word.empty())
      append_part(words, open, word, place);
    word.clear();
    if (i < text.size())
      open = false;
  }
}

} // namespace

void ShellWords::skip_blanks() {
  while (at_ < text_.size()) {
    if (starts("\\\n") || starts("\\\r\n")) {
      while (take() != '\n') {
      }
    } else if (peek() == ' ' || peek() == '\t' || peek() == '\r') {
      ++at_;
    } else if (peek() == '#') {
      while (at_ < text_.size() && peek() != '\n')
        ++at_;
    } else {
      return;
    }
  }
}

bool ShellWords::ends_word() const {
  return at_ >= text_.size()
         || std::string_view(" \t\r\n;|&<>()").find(peek())
              != std::string_view::npos
         || starts("\\\n") || starts("\\\r\n");
}

std::vector<ShellWord> ShellWords::read_words() {
  const auto place = here();
  if (auto words = whole_array())
    return *words;
  std::vector<ShellWord> words;
  bool open = false; // the last word may continue
  for (const auto& part : read_parts())
    if (part.quoted)
      append_part(words, open, part.text, place);
    else
      split_into(words, open, part.text, place);
  return words;
}

std::optional<std::vector<ShellWord>> ShellWords::whole_array() {
  const std::size_t quote = peek() == '"' ? 1 : 0;
  if (peek(quote) != '$' || peek(quote + 1) != '{')
    return std::nullopt;
  const auto end = text_.find('}', at_);
  if (end == text_.npos)
    return std::nullopt;
  if (quote > 0 && peek(end + 1 - at_) != '"')
    return std::nullopt; // a part of a longer word
  const auto inner = text_.substr(at_ + quote + 2, end - at_ - quote - 2);
  if (!inner.ends_with("[@]") && !inner.ends_with("[*]"))
    return std::nullopt;
  at_ = end + 1 + quote;
  const auto found = arrays_.find(inner.substr(0, inner.size() - 3));
  return found == arrays_.end() ? std::vector<ShellWord>{} : found->second;
}

std::vector<ShellWords::Part> ShellWords::read_parts() {
  std::vector<Part> parts;
  while (!ends_word()) {
    const char letter = peek();
    if (letter == '\'') {
      take();
      std::string text;
      while (at_ < text_.size() && peek() != '\'')
        text += take();
      if (at_ < text_.size())
        take();
      parts.push_back({text, /*quoted=*/true});
    } else if (letter == '"') {
      parts.push_back({read_quoted(), /*quoted=*/true});
    } else if (letter == '$' || letter == '`') {
      parts.push_back({expansion(), /*quoted=*/false});
    } else {
      if (letter == '\\')
        take();
      parts.push_back({std::string(at_ < text_.size() ? 1 : 0, peek()),
                       /*quoted=*/letter == '\\'});
      if (at_ < text_.size())
        take();
    }
  }
  return parts;
}

std::string ShellWords::read_quoted() {
  take();
  std::string text;
  while (at_ < text_.size() && peek() != '"') {
    if (starts("\\\n")) {
      take();
      take();
    } else if (peek() == '\\'
               && std::string_view("\"\\$`").find(peek(1))
                    != std::string_view::npos) {
      take();
      text += take();
    } else if (peek() == '$' || peek() == '`') {
      text += expansion();
    } else {
      text += take();
    }
  }
  if (at_ < text_.size())
    take();
  return text;
}

std::string ShellWords::balanced(char open, char close) {
  std::string text;
  for (int depth = 1; at_ < text_.size();) {
    const char letter = take();
    depth += letter == open;
    depth -= letter == close;
    if (depth == 0)
      break;
    text += letter;
  }
  return text;
}

std::string ShellWords::expansion() {
  if (take() == '`') {
    std::string command;
    while (at_ < text_.size() && peek() != '`')
      command += take();
    if (at_ < text_.size())
      take();
    return "$(" + command + ")";
  }
  if (starts("((")) {
    at_ += 2;
    const auto inner = balanced('(', ')');
    if (peek() == ')')
      take();
    const auto number = shell_arithmetic(inner, variables_);
    return number ? std::to_string(*number) : "$((" + inner + "))";
  }
  if (peek() == '(') {
    take();
    return "$(" + balanced('(', ')') + ")";
  }
  if (peek() == '{') {
    take();
    return parameter(balanced('{', '}'));
  }
  std::string name;
  if (std::isdigit(static_cast<unsigned char>(peek())) != 0)
    name += take();
  while (name.empty() ? is_name_letter(peek())
                      : is_shell_name(name) && is_name_letter(peek()))
    name += take();
  if (name.empty() && (peek() == '@' || peek() == '*')) { // no arguments
    take();
    return "";
  }
  return value_of(name);
}

std::string ShellWords::value_of(const std::string& name) const {
  const auto found = variables_.find(name);
  return found == variables_.end() ? "$" + name : found->second;
}

std::string ShellWords::parameter(const std::string& inner) {
  std::size_t length = 0;
  while (length < inner.size() && is_name_letter(inner[length]))
    ++length;
  const auto name = inner.substr(0, length);
  auto rest = inner.substr(length);
  const bool if_empty = rest.starts_with(':');
  if (if_empty)
    rest.erase(0, 1);
  if (rest.empty())
    return value_of(name);
  if (rest[0] != '-' && rest[0] != '=')
    return "${" + inner + "}";
  const auto found = variables_.find(name);
  const bool absent = found == variables_.end() || is_unresolved(found->second)
                      || (if_empty && found->second.empty());
  if (!absent)
    return found->second;
  const auto value = expanded(rest.substr(1));
  if (rest[0] == '=')
    variables_[name] = value;
  return value;
}

std::string ShellWords::expanded(const std::string& text) const {
  constexpr int deepest = 32;
  if (depth_ == deepest)
    return text;
  ShellWords inner(text, file_, variables_);
  inner.depth_ = depth_ + 1;
  std::string value;
  while (inner.at_ < text.size()) {
    for (const auto& part : inner.read_parts())
      value += part.text;
    if (inner.at_ < text.size())
      value += inner.take(); // a blank is part of it
  }
  return value;
}

} // namespace troupe::plans
