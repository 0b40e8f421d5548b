// A section of settings of a user-defined program: a plain struct whose members
// are the YAML keys. The settings parser, range checks, checks for unknown keys
// and `troupe explain` use it.
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
/// Last argument of a field that has no default.
inline constexpr Required required{};

namespace detail {

using UserSlot = std::variant<bool*, int*, float*, double*, std::string*,
                              std::vector<std::string>*,
                              std::map<std::string, std::string>*>;

template <class T>
constexpr bool is_slot = requires(T* member) {
  UserSlot{member};
};

struct UserField {
  std::string key;
  std::string sentence;
  bool required = false;
  double least = -std::numeric_limits<double>::infinity();
  std::vector<std::string> choices = {};
  std::function<UserSlot(std::any&)> slot;
};

/// A Section without its type.
struct UserSection {
  std::string name;
  std::string sentence;
  std::any defaults;
  std::vector<UserField> fields;
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
                                 return detail::UserSlot{
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
  /// Sets the smallest value that the preceding field accepts.
  Section& at_least(double value) {
    parts_.fields.back().least = value;
    return *this;
  }
  /// Sets the texts that the preceding field accepts.
  Section& one_of(std::vector<std::string> words) {
    parts_.fields.back().choices = std::move(words);
    return *this;
  }

  const detail::UserSection& parts() const {
    return parts_;
  }

private:
  detail::UserSection parts_;
};

} // namespace troupe
