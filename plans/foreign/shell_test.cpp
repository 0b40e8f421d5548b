#include "plans/foreign/shell_test.hpp"

#include "plans/foreign/shell_words.hpp"

namespace troupe::plans {

namespace {

bool is_bracketed(const ShellCommand& words) {
  const auto& first = words.front().text;
  return (first == "[" && words.back().text == "]")
         || (first == "[[" && words.back().text == "]]");
}

} // namespace

bool is_shell_test(const ShellCommand& words) {
  const auto& first = words.front().text;
  return first == "[" || first == "[[" || first == "test"
         || (first == "!" && words.size() > 1
             && is_shell_test({words.begin() + 1, words.end()}));
}

std::optional<bool> value_of_test(const ShellCommand& words) {
  if (!is_bracketed(words))
    return std::nullopt;
  const auto text = [&](std::size_t i) {
    return is_unresolved(words[i].text) ? std::string() : words[i].text;
  };
  const auto size = words.size() - 2;
  if (size == 2 && words[1].text == "-z")
    return text(2).empty();
  if (size == 2 && words[1].text == "-n")
    return !text(2).empty();
  if (size == 3 && (words[2].text == "==" || words[2].text == "="))
    return text(1) == text(3);
  if (size == 3 && words[2].text == "!=")
    return text(1) != text(3);
  return std::nullopt;
}

} // namespace troupe::plans
