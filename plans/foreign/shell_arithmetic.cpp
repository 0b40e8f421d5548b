// Whole numbers in `$(( ))`.
#include "config/yaml/yaml_tree.hpp"
#include "plans/foreign/shell_script.hpp"

#include <cctype>
#include <limits>

namespace troupe::plans {

namespace {

/// Recursive descent; `failed_` once something is no number.
class ShellSum {
public:
  ShellSum(std::string_view text,
           const std::map<std::string, std::string>& variables)
    : text_(text),
      variables_(variables) {}

  std::optional<std::int64_t> value() {
    const auto result = sum();
    skip();
    if (failed_ || at_ != text_.size())
      return std::nullopt;
    return result;
  }

private:
  void skip() {
    while (at_ < text_.size() && std::isspace(letter()) != 0)
      ++at_;
  }
  int letter() const {
    return at_ < text_.size() ? static_cast<unsigned char>(text_[at_]) : 0;
  }
  bool take(char wanted) {
    skip();
    if (letter() != wanted)
      return false;
    ++at_;
    return true;
  }

  std::int64_t sum() {
    auto result = product();
    while (!failed_) {
      const bool plus = take('+');
      if (!plus && !take('-'))
        break;
      const auto right = product();
      if (plus ? __builtin_add_overflow(result, right, &result)
               : __builtin_sub_overflow(result, right, &result))
        return fail();
    }
    return result;
  }

  std::int64_t product() {
    auto result = factor();
    while (!failed_) {
      const bool times = take('*');
      const bool over = !times && take('/');
      if (!times && !over && !take('%'))
        break;
      const auto right = factor();
      // the smallest number has no opposite
      const bool traps
        = right == 0
          || (right == -1
              && result == std::numeric_limits<std::int64_t>::min());
      if (times ? __builtin_mul_overflow(result, right, &result) : traps)
        return fail();
      if (!times)
        result = over ? result / right : result % right;
    }
    return result;
  }

  std::int64_t factor() {
    constexpr int deepest = 64;
    if (++depth_ > deepest)
      return fail();
    const auto result = inner_factor();
    --depth_;
    return result;
  }

  std::int64_t inner_factor() {
    skip();
    if (take('-')) {
      std::int64_t opposite = 0;
      return __builtin_sub_overflow(std::int64_t{0}, factor(), &opposite)
               ? fail()
               : opposite;
    }
    if (take('(')) {
      const auto inner = sum();
      return take(')') ? inner : fail();
    }
    take('$');
    const bool braced = take('{');
    std::string word;
    while (std::isalnum(letter()) != 0 || letter() == '_')
      word += text_[at_++];
    if (braced && !take('}'))
      return fail();
    const auto variable = variables_.find(word);
    std::int64_t number = 0;
    return read_whole(variable == variables_.end() ? word : variable->second,
                      number)
             ? number
             : fail();
  }

  std::int64_t fail() {
    failed_ = true;
    return 0;
  }

  std::string_view text_;
  const std::map<std::string, std::string>& variables_;
  std::size_t at_ = 0;
  int depth_ = 0;
  bool failed_ = false;
};

} // namespace

std::optional<std::int64_t>
shell_arithmetic(std::string_view text,
                 const std::map<std::string, std::string>& variables) {
  return ShellSum(text, variables).value();
}

} // namespace troupe::plans
