// The words of a shell script: quotes, variables, arrays, arithmetic, continued
// lines. What is between words (commands, conditions) is shell_script.cpp.
#pragma once

#include "plans/foreign/shell_script.hpp"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::plans {

/// Returns whether a variable may have this name.
bool is_shell_name(std::string_view text);
/// Returns whether a letter may be in a variable's name.
bool is_name_letter(char letter);
/// Returns whether a text is what only the machine knows: a variable that
/// nobody set, a command.
bool is_unresolved(std::string_view text);

/// Bytes of a variable: a script that doubles one again and again is no launch
/// script.
inline constexpr std::size_t longest_shell_value = 1 << 16;

class ShellWords {
protected:
  ShellWords(const std::string& text, const std::string& file,
             std::map<std::string, std::string> variables)
    : text_(text),
      file_(file),
      variables_(std::move(variables)) {}

  /// A part of a word before it is split at blanks, which quoted parts are not.
  struct Part {
    std::string text;
    bool quoted = false;
  };

  Place here() const {
    return {file_, line_};
  }
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  char take() {
    const char letter = text_[at_++];
    line_ += letter == '\n';
    return letter;
  }
  bool starts(std::string_view word) const {
    return std::string_view(text_).substr(at_).starts_with(word);
  }

  /// Skips blanks, continued lines and a comment; stops at the end of a line.
  void skip_blanks();
  bool ends_word() const;
  /// Reads one word, which blanks in unquoted variables split, and an array's
  /// words in its place.
  std::vector<ShellWord> read_words();
  std::vector<Part> read_parts();

  const std::string& text_;
  const std::string& file_;
  std::map<std::string, std::string> variables_;
  std::map<std::string, std::vector<ShellWord>> arrays_;
  std::size_t at_ = 0;
  int line_ = 1;
  int depth_ = 0; ///< of defaults in defaults

private:
  /// Returns the words of `${NAME[@]}`, quoted or not; none, reading nothing,
  /// if the next word is no array.
  std::optional<std::vector<ShellWord>> whole_array();
  std::string read_quoted();
  /// Returns the text up to the closing letter, nested ones included.
  std::string balanced(char open, char close);
  /// Reads what begins with $ or `.
  std::string expansion();
  std::string value_of(const std::string& name) const;
  /// Returns the value of `${inner}`: a name, or one with a default.
  std::string parameter(const std::string& inner);
  /// Expands a text inside `${NAME:-text}`.
  std::string expanded(const std::string& text) const;
};

} // namespace troupe::plans
