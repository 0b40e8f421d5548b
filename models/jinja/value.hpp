// Values of the template language: what Jinja's expressions compute with, in
// Python's sense (texts are counted in code points, division of integers gives
// a real number, printing follows str() and repr()). Lists and mappings are
// shared and never change, apart from a namespace, which templates assign to
// and which no value holds: values are trees, of limited depth and size,
// whatever a hostile template does.
#pragma once

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

/// A mistake of a template or of its data; `line` 0: not known yet.
struct TemplateError : std::runtime_error {
  explicit TemplateError(const std::string& what, int at_line = 0)
    : std::runtime_error(what),
      line(at_line) {}
  int line;
};

/// Most bytes of a text, and of a list or mapping with all that it holds.
inline constexpr std::size_t size_limit = std::size_t{1} << 26;

class Value;
using List = std::vector<Value>;
using Dict = std::vector<std::pair<std::string, Value>>; ///< in written order
using Named = std::vector<std::pair<std::string, Value>>;

/// Arguments of a call, filter or test.
struct Arguments {
  std::vector<Value> positional;
  Named named;

  /// The argument at `index` or of that name; nullptr if it was not given.
  const Value* find(std::size_t index, std::string_view name) const;
  /// Throws TemplateError naming `who` where it was not given.
  const Value& need(std::size_t index, std::string_view name,
                    std::string_view who) const;
  /// Counts the steps that a call takes to look at them.
  void count() const;
};

struct Undefined {
  Undefined() = default;
  explicit Undefined(std::string_view looked_for);
  std::string name; ///< what was looked for, for messages; cut if it is long
};
struct None {};
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
  /// TemplateError for what is too deep or too large, or holds a namespace.
  Value(List list);
  Value(Dict dict);
  Value(Function function)
    : data_(std::make_shared<Function>(std::move(function))) {}
  static Value name_space(Dict members);
  /// A function that keeps `object`, and counts as deep and large as it.
  static Value method(const Value& object, Function function);
  static Value tuple(List entries); ///< a list that prints as (a, b)
  /// `depth`: how many lists and mappings are around it.
  static Value from_json(const nlohmann::ordered_json& json, int depth = 0);

  template <class T>
  const T* as() const {
    return std::get_if<T>(&data_);
  }
  const List* list() const;
  const Dict* dict() const;         ///< also of a namespace
  const Function* function() const; ///< nullptr if it cannot be called
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
  /// A whole number (True is 1), else TemplateError naming `who`.
  std::int64_t integer(std::string_view who) const;
  bool is_number() const; ///< integers, reals and booleans
  double real() const;    ///< of a number
  /// The text, else TemplateError naming `who`.
  const std::string& need_text(std::string_view who) const;

  /// Bytes that it takes, about; what entries share counts for each.
  std::size_t size_bytes() const;
  bool truth() const;
  const char* kind() const; ///< "a text", "a list", .., for messages
  /// What a template prints: str() of Python; "" of an undefined value.
  std::string print() const;
  std::string repr() const;
  /// json.dumps without ASCII escapes; indent < 0: on one line.
  std::string to_json(std::int64_t indent = -1) const;

  /// Sets a namespace's member.
  void assign(const std::string& name, Value value) const;

private:
  enum class Flavor : std::uint8_t { plain, name_space, tuple };

  void hold(const Value& entry, std::size_t name_bytes);

  Data data_;
  Flavor flavor_ = Flavor::plain;
  std::uint8_t depth_ = 0;        ///< of lists and mappings in each other
  std::uint32_t inner_bytes_ = 0; ///< of what it holds
};

/// Entries of a list that nobody knows the size of before: TemplateError as
/// soon as it is too large.
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

/// Counts the steps that a copy of the value takes.
void count_copy(const Value& value);

/// nullptr if the mapping has no such key.
const Value* find(const Dict& dict, std::string_view key);

bool equal(const Value& a, const Value& b);
/// Python's <; TemplateError for values that have no order.
bool less(const Value& a, const Value& b);
/// a in b.
bool contains(const Value& a, const Value& b);
/// `op` one of + - * / // % ** ~.
Value arithmetic(std::string_view op, const Value& a, const Value& b);
/// What a loop sees: entries of a list, keys of a mapping, characters of a
/// text, nothing of an undefined value.
List iterate(const Value& value);

/// object.name: methods first, then entries; undefined if there is none.
Value attribute(const Value& object, const std::string& name);
/// object[key]: entries first, then methods.
Value item(const Value& object, const Value& key);
/// object[start:stop:step]; undefined bounds are open.
Value slice(const Value& object, const Value& start, const Value& stop,
            const Value& step);

} // namespace troupe::models::jinja
