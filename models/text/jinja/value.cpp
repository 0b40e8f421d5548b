#include "models/text/jinja/value.hpp"

#include "models/io/utf8.hpp"
#include "models/text/jinja/steps.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>

namespace troupe::models::jinja {

namespace {

using Json = nlohmann::ordered_json;

constexpr int value_depth_limit = 200;      // nesting of lists
constexpr std::size_t value_own_bytes = 64; // without its contents

[[noreturn]] void value_too_large() {
  throw TemplateError("a list or mapping takes more than 64 MiB");
}

} // namespace

const Value* Arguments::find(std::size_t index, std::string_view name) const {
  if (index < positional.size())
    return &positional[index];
  return jinja::find(named, name);
}

const Value& Arguments::need(std::size_t index, std::string_view name,
                             std::string_view who) const {
  const Value* value = find(index, name);
  if (value == nullptr)
    throw TemplateError(std::string(who) + " needs an argument '"
                        + std::string(name) + "'");
  return *value;
}

void Arguments::count() const {
  std::ranges::for_each(positional, count_copy);
  for (const auto& [name, value] : named)
    count_copy(value);
}

Undefined::Undefined(std::string_view looked_for) {
  constexpr std::size_t most = 100; // in bytes
  std::size_t size = std::min(most, looked_for.size());
  while (size < looked_for.size() && size > 0
         && (looked_for[size] & 0xC0) == 0x80) // inside a code point
    --size;
  name = looked_for.substr(0, size);
}

Value::Value(std::string text) : data_(std::move(text)) {
  count_copy(*this);
}

/// Accounts for an entry in the constructor of a list or mapping.
void Value::hold(const Value& entry, std::size_t name_bytes) {
  count_copy(entry);
  count_bytes(name_bytes);
  if (entry.is_namespace())
    throw TemplateError(
      "unsupported construct: a namespace inside a list, mapping or namespace");
  if (entry.depth_ >= value_depth_limit)
    throw TemplateError("a value is nested too deeply");
  depth_ = std::max(depth_, static_cast<std::uint8_t>(entry.depth_ + 1));
  const std::size_t bytes = inner_bytes_ + entry.size_bytes() + name_bytes;
  if (bytes > size_limit)
    value_too_large();
  inner_bytes_ = static_cast<std::uint32_t>(bytes);
}

Value::Value(List list) {
  for (const Value& entry : list)
    hold(entry, 0);
  data_ = std::make_shared<const List>(std::move(list));
}

Value::Value(Dict dict) {
  for (const auto& [key, entry] : dict)
    hold(entry, key.size_bytes());
  data_ = std::make_shared<Dict>(std::move(dict));
}

void ListInMaking::add(Value entry) {
  count_steps();
  bytes_ += entry.size_bytes();
  if (bytes_ > size_limit)
    value_too_large();
  entries_.push_back(std::move(entry));
}

std::size_t Value::size_bytes() const {
  const auto* string = text();
  return value_own_bytes + (string != nullptr ? string->size() : inner_bytes_);
}

Value Value::name_space(Dict members) {
  Value value(std::move(members));
  value.flavor_ = Flavor::name_space;
  return value;
}

Value Value::method(const Value& object, Function function) {
  Value value(std::move(function));
  value.hold(object, 0);
  return value;
}

Value Value::tuple(List entries) {
  Value value(std::move(entries));
  value.flavor_ = Flavor::tuple;
  return value;
}

Value Value::from_json(const Json& json, int depth) {
  if (depth > value_depth_limit)
    throw TemplateError("a message is nested too deeply");
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
      list.push_back(from_json(entry, depth + 1));
    return list;
  }
  if (!json.is_object())
    return None{};
  Dict dict;
  for (const auto& [key, entry] : json.items())
    dict.emplace_back(key, from_json(entry, depth + 1));
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

void Value::assign(const std::string& name, Value value) const {
  if (!is_namespace())
    throw TemplateError("only a namespace's members can be set, not those of "
                        + std::string(kind()));
  Dict& members = **as<std::shared_ptr<Dict>>();
  Value all; // a namespace has the limits of a mapping
  all.hold(value, name.size());
  for (const auto& [key, member] : members)
    if (!(key == std::string_view(name)))
      all.hold(member, key.size_bytes());
  for (auto& [key, member] : members)
    if (key == std::string_view(name)) {
      member = std::move(value);
      return;
    }
  members.emplace_back(name, std::move(value));
}

void count_copy(const Value& value) {
  count_steps();
  if (const auto* text = value.text())
    count_bytes(text->size());
}

const Value* find(const Named& named, std::string_view name) {
  count_names(named.size());
  for (const auto& [known, value] : named) {
    if (known.size() != name.size())
      continue;
    count_bytes(name.size());
    if (known == name)
      return &value;
  }
  return nullptr;
}

const Value* find(const Dict& dict, std::string_view key) {
  count_names(dict.size());
  for (const auto& [known, value] : dict) {
    if (known.text() == nullptr || known.text()->size() != key.size())
      continue;
    count_bytes(key.size());
    if (known == key)
      return &value;
  }
  return nullptr;
}

const Value* find(const Dict& dict, const Key& key) {
  if (const auto* text = key.text())
    return find(dict, std::string_view(*text));
  count_names(dict.size());
  for (const auto& [known, value] : dict)
    if (known == key)
      return &value;
  return nullptr;
}

void put(Dict& dict, Key key, Value value) {
  count_names(dict.size());
  for (auto& [known, old] : dict)
    if (known == key) {
      old = std::move(value);
      return;
    }
  dict.emplace_back(std::move(key), std::move(value));
}

} // namespace troupe::models::jinja
