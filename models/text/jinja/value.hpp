// Values of the template language with Python's semantics: texts are counted in
// code points, division of integers yields a real number, printing follows
// str() and repr(). Lists and mappings are shared and immutable, except for a
// namespace, which templates assign to and which no value can contain: values
// are trees, of limited depth and size, whatever a hostile template does.
#pragma once

#include "models/text/jinja/key.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace troupe::models::jinja {

/// A mistake in a template or its data; `line` 0: not known yet.
struct TemplateError : std::runtime_error {
  explicit TemplateError(const std::string& what, int at_line = 0)
    : std::runtime_error(what),
      line(at_line) {}
  int line;
};

/// Largest size in bytes of a text, and of a list or mapping with its contents.
inline constexpr std::size_t size_limit = std::size_t{1} << 26;

class Value;
struct JsonStyle;
using List = std::vector<Value>;
using Dict = std::vector<std::pair<Key, Value>>; ///< in written order
using Named = std::vector<std::pair<std::string, Value>>;

/// Arguments of a call, filter or test.
struct Arguments {
  std::vector<Value> positional;
  Named named;

  /// Returns the argument at `index` or of that name; nullptr if it is not
  /// given.
  const Value* find(std::size_t index, std::string_view name) const;
  /// Returns the argument. Throws TemplateError naming `who` if it is not
  /// given.
  const Value& need(std::size_t index, std::string_view name,
                    std::string_view who) const;
  /// Counts the steps of examining the arguments in a call.
  void count() const;
};

struct Undefined {
  Undefined() = default;
  explicit Undefined(std::string_view looked_for);
  std::string name; ///< name looked up, for messages; cut if long
};
using Function = std::function<Value(const Arguments&)>;

class Value {
public:
  using Data = std::variant<Undefined, None, bool, std::int64_t, double,
                            std::string, std::shared_ptr<const List>,
                            std::shared_ptr<Dict>, std::shared_ptr<Function>>;

  Value() = default; ///< undefined
  Value(Undefined undefined) : data_(std::move(undefined)) {}
  Value(None none) : data_(none) {}
  Value(bool flag) : data_(flag) {}
  Value(std::int64_t number) : data_(number) {}
  Value(double number) : data_(number) {}
  Value(std::string text);
  Value(const char* text) : data_(std::string(text)) {}
  /// Creates a list. Throws TemplateError if it is too deep or too large, or
  /// contains a namespace.
  Value(List list);
  Value(Dict dict);
  Value(Function function)
    : data_(std::make_shared<Function>(std::move(function))) {}
  static Value name_space(Dict members);
  /// Returns a function that keeps `object`, and counts as deep and large as
  /// it.
  static Value method(const Value& object, Function function);
  static Value tuple(List entries); ///< a list that prints as (a, b)
  /// Converts JSON; `depth` is the number of enclosing lists and mappings.
  static Value from_json(const nlohmann::ordered_json& json, int depth = 0);

  template <class T>
  const T* as() const {
    return std::get_if<T>(&data_);
  }
  const List* list() const;
  const Dict* dict() const;         ///< also of a namespace
  const Function* function() const; ///< nullptr if not callable
  const std::string* text() const {
    return as<std::string>();
  }
  bool undefined() const {
    return std::holds_alternative<Undefined>(data_);
  }
  bool none() const {
    return std::holds_alternative<None>(data_);
  }
  bool is_namespace() const {
    return flavor_ == Flavor::name_space;
  }
  bool is_tuple() const {
    return flavor_ == Flavor::tuple;
  }
  /// Returns a whole number (True is 1). Throws TemplateError naming `who`
  /// otherwise.
  std::int64_t integer(std::string_view who) const;
  bool is_number() const; ///< integers, reals and booleans
  double real() const;    ///< of a number
  /// Returns the text. Throws TemplateError naming `who` otherwise.
  const std::string& need_text(std::string_view who) const;

  /// Returns its approximate size; shared contents count for each reference.
  std::size_t size_bytes() const;
  bool truth() const;
  const char* kind() const; ///< "a text", "a list", ..., for messages
  /// Returns the text that a template prints: Python's str(); "" if undefined.
  std::string print() const;
  std::string repr() const;
  /// json.dumps.
  std::string to_json(const JsonStyle& style) const;

  /// Sets a member of a namespace.
  void assign(const std::string& name, Value value) const;

private:
  enum class Flavor : std::uint8_t { plain, name_space, tuple };

  void hold(const Value& entry, std::size_t name_bytes);

  Data data_;
  Flavor flavor_ = Flavor::plain;
  std::uint8_t depth_ = 0;        ///< nesting of lists and mappings
  std::uint32_t inner_bytes_ = 0; ///< size of its contents
};

/// A list of unknown final size; throws TemplateError as soon as it is too
/// large.
class ListInMaking {
public:
  void add(Value entry);
  operator Value() && {
    return std::move(entries_);
  }
  List take() && {
    return std::move(entries_);
  }

private:
  List entries_;
  std::size_t bytes_ = 0;
};

/// Counts the steps of copying the value.
void count_copy(const Value& value);

/// nullptr if there is no such name or key.
const Value* find(const Named& named, std::string_view name);
const Value* find(const Dict& dict, std::string_view key);
const Value* find(const Dict& dict, const Key& key);
/// Puts the value in the place of the one with that key, else at the end.
void put(Dict& dict, Key key, Value value);

bool equal(const Value& a, const Value& b);
/// Returns Python's a < b. Throws TemplateError for values without an order.
bool less(const Value& a, const Value& b);
/// Returns a in b.
bool contains(const Value& a, const Value& b);
/// Returns a `op` b for a comparison, in, or not in.
bool holds(std::string_view op, const Value& a, const Value& b);
/// Computes a `op` b for one of + - * / // % ** ~.
Value arithmetic(std::string_view op, const Value& a, const Value& b);
/// Returns the entries of a loop: those of a list, keys of a mapping,
/// characters of a text, none of an undefined value.
List iterate(const Value& value);

/// Returns object.name: methods first, then entries; undefined if there is
/// none.
Value attribute(const Value& object, const std::string& name);
/// Returns object[key]: entries first, then methods.
Value item(const Value& object, const Value& key);
/// Returns object[start:stop:step]; undefined bounds are open.
Value slice(const Value& object, const Value& start, const Value& stop,
            const Value& step);

} // namespace troupe::models::jinja
