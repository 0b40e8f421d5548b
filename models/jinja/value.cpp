#include "models/jinja/value.hpp"

#include "models/internal/utf8.hpp"

#include <nlohmann/json.hpp>

#include <array>
#include <charconv>
#include <cmath>

namespace troupe::models::jinja {

namespace {

using Json = nlohmann::ordered_json;

constexpr int value_depth_limit = 200; // of printed nesting

std::string value_real_text(double number) {
  if (std::isnan(number))
    return "nan";
  if (std::isinf(number))
    return number < 0 ? "-inf" : "inf";
  std::array<char, 40> buffer{};
  const double size = std::abs(number);
  const bool plain = size == 0 || (size >= 1e-4 && size < 1e16);
  const auto end
    = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number,
                    plain ? std::chars_format::fixed
                          : std::chars_format::scientific)
        .ptr;
  std::string text(buffer.data(), end);
  if (plain && text.find('.') == std::string::npos)
    text += ".0";
  return text;
}

std::string value_quoted(const std::string& text) {
  const bool single = text.find('\'') == std::string::npos
                      || text.find('"') != std::string::npos;
  const char quote = single ? '\'' : '"';
  std::string out(1, quote);
  for (const char c : text) {
    if (c == '\n')
      out += "\\n";
    else if (c == '\t')
      out += "\\t";
    else if (c == '\r')
      out += "\\r";
    else if (c == '\\' || c == quote)
      out += std::string("\\") + c;
    else
      out += c;
  }
  return out + quote;
}

std::string value_repr(const Value& value, int depth) {
  if (depth > value_depth_limit)
    throw TemplateError("a value is nested too deeply to print");
  if (const auto* text = value.text())
    return value_quoted(*text);
  std::string out;
  if (const List* list = value.list()) {
    for (const Value& entry : *list)
      out += (out.empty() ? "" : ", ") + value_repr(entry, depth + 1);
    if (value.is_tuple())
      return "(" + out + (list->size() == 1 ? ",)" : ")");
    return "[" + out + "]";
  }
  if (const Dict* dict = value.dict()) {
    for (const auto& [key, entry] : *dict)
      out += (out.empty() ? "" : ", ") + value_quoted(key) + ": "
             + value_repr(entry, depth + 1);
    return "{" + out + "}";
  }
  return value.print();
}

struct JsonWriter {
  std::int64_t indent;
  std::string out;

  void line(int depth) {
    if (indent >= 0)
      out += "\n" + std::string(static_cast<std::size_t>(indent) * depth, ' ');
  }
  void text(const std::string& text) {
    out += Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  void separate(bool first, int depth) {
    if (!first)
      out += indent >= 0 ? "," : ", ";
    line(depth);
  }

  void list(const List& list, int depth) {
    out += "[";
    for (std::size_t i = 0; i < list.size(); ++i) {
      separate(i == 0, depth + 1);
      write(list[i], depth + 1);
    }
    if (!list.empty())
      line(depth);
    out += "]";
  }
  void dict(const Dict& dict, int depth) {
    out += "{";
    for (std::size_t i = 0; i < dict.size(); ++i) {
      separate(i == 0, depth + 1);
      text(dict[i].first);
      out += ": ";
      write(dict[i].second, depth + 1);
    }
    if (!dict.empty())
      line(depth);
    out += "}";
  }
  void write(const Value& value, int depth) {
    if (depth > value_depth_limit)
      throw TemplateError("a value is nested too deeply for tojson");
    if (const auto* string = value.text())
      text(*string);
    else if (const List* entries = value.list())
      list(*entries, depth);
    else if (const Dict* members = value.dict())
      dict(*members, depth);
    else if (const bool* flag = value.as<bool>())
      out += *flag ? "true" : "false";
    else if (value.none())
      out += "null";
    else if (value.is_number())
      out += value.print();
    else
      throw TemplateError(std::string("tojson cannot write ") + value.kind());
  }
};

} // namespace

const Value* Arguments::find(std::size_t index, std::string_view name) const {
  if (index < positional.size())
    return &positional[index];
  for (const auto& [key, value] : named)
    if (key == name)
      return &value;
  return nullptr;
}

const Value& Arguments::need(std::size_t index, std::string_view name,
                             std::string_view who) const {
  const Value* value = find(index, name);
  if (value == nullptr)
    throw TemplateError(std::string(who) + " needs an argument '"
                        + std::string(name) + "'");
  return *value;
}

Value Value::name_space(Dict members) {
  Value value(std::move(members));
  value.flavor_ = Flavor::name_space;
  return value;
}

Value Value::tuple(List entries) {
  Value value(std::move(entries));
  value.flavor_ = Flavor::tuple;
  return value;
}

Value Value::from_json(const Json& json) {
  if (json.is_boolean())
    return json.get<bool>();
  if (json.is_number_unsigned() && json.get<std::uint64_t>() > INT64_MAX)
    return json.get<double>();
  if (json.is_number_integer())
    return json.get<std::int64_t>();
  if (json.is_number())
    return json.get<double>();
  if (json.is_string())
    return internal::replace_invalid_utf8(json.get<std::string>());
  if (json.is_array()) {
    List list;
    for (const Json& entry : json)
      list.push_back(from_json(entry));
    return list;
  }
  if (!json.is_object())
    return None{};
  Dict dict;
  for (const auto& [key, entry] : json.items())
    dict.emplace_back(key, from_json(entry));
  return dict;
}

const List* Value::list() const {
  const auto* shared = as<std::shared_ptr<const List>>();
  return shared == nullptr ? nullptr : shared->get();
}

const Dict* Value::dict() const {
  const auto* shared = as<std::shared_ptr<Dict>>();
  return shared == nullptr ? nullptr : shared->get();
}

const Function* Value::function() const {
  const auto* shared = as<std::shared_ptr<Function>>();
  return shared == nullptr ? nullptr : shared->get();
}

std::int64_t Value::integer(std::string_view who) const {
  if (const bool* flag = as<bool>())
    return *flag ? 1 : 0;
  if (const auto* number = as<std::int64_t>())
    return *number;
  throw TemplateError(std::string(who) + " needs a whole number, got "
                      + kind());
}

bool Value::is_number() const {
  return as<bool>() != nullptr || as<std::int64_t>() != nullptr
         || as<double>() != nullptr;
}

double Value::real() const {
  if (const double* number = as<double>())
    return *number;
  return static_cast<double>(integer("arithmetic"));
}

const std::string& Value::need_text(std::string_view who) const {
  if (const auto* found = text())
    return *found;
  if (const auto* missing = as<Undefined>())
    throw TemplateError("'" + missing->name + "' is undefined");
  throw TemplateError(std::string(who) + " needs a text, got " + kind());
}

bool Value::truth() const {
  if (const bool* flag = as<bool>())
    return *flag;
  if (is_number())
    return real() != 0;
  if (const auto* string = text())
    return !string->empty();
  if (const List* entries = list())
    return !entries->empty();
  if (const Dict* members = dict())
    return is_namespace() || !members->empty();
  return function() != nullptr;
}

const char* Value::kind() const {
  static constexpr std::array<const char*, 9> names{"nothing (undefined)",
                                                    "none",
                                                    "a boolean",
                                                    "a number",
                                                    "a number",
                                                    "a text",
                                                    "a list",
                                                    "a mapping",
                                                    "a function"};
  return names[data_.index()];
}

std::string Value::print() const {
  if (const auto* string = text())
    return *string;
  if (const bool* flag = as<bool>())
    return *flag ? "True" : "False";
  if (const auto* whole = as<std::int64_t>())
    return std::to_string(*whole);
  if (const auto* number = as<double>())
    return value_real_text(*number);
  if (none())
    return "None";
  if (undefined())
    return "";
  if (function() != nullptr)
    return "<function>";
  return value_repr(*this, 0);
}

std::string Value::repr() const {
  return value_repr(*this, 0);
}

std::string Value::to_json(std::int64_t indent) const {
  JsonWriter writer{indent, ""};
  writer.write(*this, 0);
  return std::move(writer.out);
}

void Value::assign(const std::string& name, Value value) const {
  if (!is_namespace())
    throw TemplateError("only a namespace's members can be set, not those of "
                        + std::string(kind()));
  Dict& members = **as<std::shared_ptr<Dict>>();
  for (auto& [key, member] : members)
    if (key == name) {
      member = std::move(value);
      return;
    }
  members.emplace_back(name, std::move(value));
}

const Value* find(const Dict& dict, std::string_view key) {
  for (const auto& [name, value] : dict)
    if (name == key)
      return &value;
  return nullptr;
}

} // namespace troupe::models::jinja
