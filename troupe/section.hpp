// A section of settings of an own program: a plain struct whose members are the
// YAML keys. Parsing, ranges, unknown keys and `troupe explain` know them.
#pragma once

#include <any>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace troupe {

struct Required {};
/// Last argument of a field without a default.
inline constexpr Required required{};

namespace detail {

using OwnSlot = std::variant<bool*, int*, float*, double*, std::string*,
                             std::vector<std::string>*,
                             std::map<std::string, std::string>*>;

template <class T>
constexpr bool is_slot = requires(T* member) {
  OwnSlot{member};
};

struct OwnField {
  std::string key;
  std::string sentence;
  bool required = false;
  double least = -std::numeric_limits<double>::infinity();
  std::vector<std::string> choices = {};
  std::function<OwnSlot(std::any&)> slot;
};

/// A Section without its type.
struct OwnSection {
  std::string name;
  std::string sentence;
  std::any defaults;
  std::vector<OwnField> fields;
};

} // namespace detail

template <class S>
class Section {
public:
  explicit Section(std::string name,
                   std::string sentence = "Settings of this program.") {
    parts_.name = std::move(name);
    parts_.sentence = std::move(sentence);
    parts_.defaults = S{};
  }

  template <class T>
  Section& field(const char* key, T S::*member, std::string sentence) {
    static_assert(
      detail::is_slot<T>,
      "a setting is bool, int, float, double, std::string, a vector "
      "of texts or a map of texts to texts");
    if (!sentence.ends_with('.'))
      sentence += '.';
    if constexpr (detail::is_slot<T>)
      parts_.fields.push_back({.key = key,
                               .sentence = std::move(sentence),
                               .slot = [member](std::any& values) {
                                 return detail::OwnSlot{
                                   &(std::any_cast<S&>(values).*member)};
                               }});
    return *this;
  }
  template <class T>
  Section& field(const char* key, T S::*member, std::string sentence,
                 Required) {
    field(key, member, std::move(sentence));
    parts_.fields.back().required = true;
    return *this;
  }
  /// Of the field before: the least number that it takes.
  Section& at_least(double value) {
    parts_.fields.back().least = value;
    return *this;
  }
  /// Of the field before: the texts that it takes.
  Section& one_of(std::vector<std::string> words) {
    parts_.fields.back().choices = std::move(words);
    return *this;
  }

  const detail::OwnSection& parts() const {
    return parts_;
  }

private:
  detail::OwnSection parts_;
};

} // namespace troupe
