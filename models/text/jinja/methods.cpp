// Attributes and methods of values (declared in value.hpp): object.name and
// object[key].
#include "models/text/jinja/format.hpp"
#include "models/text/jinja/steps.hpp"
#include "models/text/jinja/text.hpp"
#include "models/text/jinja/value.hpp"

#include <algorithm>
#include <array>

namespace troupe::models::jinja {

namespace {

using Method = Value (*)(const Value& self, const Arguments& arguments);

std::string method_chars(const Arguments& arguments) {
  const Value* chars = arguments.find(0, "chars");
  return chars == nullptr || chars->none() ? "" : chars->need_text("strip");
}

/// Implements str.startswith and endswith, which take one text or several.
template <class Matches>
bool method_any(const Value& wanted, const Matches& matches) {
  if (const List* several = wanted.list()) {
    for (const Value& one : *several) {
      count_copy(one);
      if (matches(one.need_text("startswith or endswith")))
        return true;
    }
    return false;
  }
  return matches(wanted.need_text("startswith or endswith"));
}

Value method_split(const Value& self, const Arguments& arguments) {
  const Value* by = arguments.find(0, "sep");
  const Value* most = arguments.find(1, "maxsplit");
  ListInMaking out;
  for (const std::string_view part :
       split(*self.text(),
             by == nullptr || by->none() ? "" : by->need_text("split"),
             most == nullptr ? -1 : most->integer("split")))
    out.add(std::string(part));
  return out;
}

Value method_replace(const Value& self, const Arguments& arguments) {
  const Value* count = arguments.find(2, "count");
  return replace(*self.text(),
                 arguments.need(0, "old", "replace").need_text("replace"),
                 arguments.need(1, "new", "replace").need_text("replace"),
                 count == nullptr ? -1 : count->integer("replace"));
}

Value method_join(const Value& self, const Arguments& arguments) {
  std::string out;
  bool first = true;
  for (const Value& part : iterate(arguments.need(0, "iterable", "join"))) {
    append(out, first ? "" : *self.text());
    append(out, part.need_text("join"));
    first = false;
  }
  return out;
}

Value method_find(const Value& self, const Arguments& arguments) {
  const std::string& text = *self.text();
  const auto at
    = find_text(text, arguments.need(0, "sub", "find").need_text("find"));
  return at == std::string_view::npos
           ? std::int64_t{-1}
           : length(std::string_view(text).substr(0, at));
}

Value method_count(const Value& self, const Arguments& arguments) {
  const std::string& what
    = arguments.need(0, "sub", "count").need_text("count");
  if (what.empty())
    return length(*self.text()) + 1;
  return static_cast<std::int64_t>(split(*self.text(), what, -1).size()) - 1;
}

Value method_splitlines(const Value& self, const Arguments&) {
  ListInMaking out;
  for (const std::string_view line : split_lines(*self.text()))
    out.add(std::string(line));
  return out;
}

constexpr std::array<std::pair<const char*, Method>, 18> text_methods{{
  {"strip",
   [](const Value& s, const Arguments& a) -> Value {
     return strip(*s.text(), method_chars(a), Side::both);
   }},
  {"lstrip",
   [](const Value& s, const Arguments& a) -> Value {
     return strip(*s.text(), method_chars(a), Side::left);
   }},
  {"rstrip",
   [](const Value& s, const Arguments& a) -> Value {
     return strip(*s.text(), method_chars(a), Side::right);
   }},
  {"upper",
   [](const Value& s, const Arguments&) -> Value { return upper(*s.text()); }},
  {"lower",
   [](const Value& s, const Arguments&) -> Value { return lower(*s.text()); }},
  {"title",
   [](const Value& s, const Arguments&) -> Value { return title(*s.text()); }},
  {"capitalize",
   [](const Value& s, const Arguments&) -> Value {
     return capitalize(*s.text());
   }},
  {"startswith",
   [](const Value& s, const Arguments& a) -> Value {
     return method_any(
       a.need(0, "prefix", "startswith"),
       [&](const std::string& start) { return s.text()->starts_with(start); });
   }},
  {"endswith",
   [](const Value& s, const Arguments& a) -> Value {
     return method_any(
       a.need(0, "suffix", "endswith"),
       [&](const std::string& end) { return s.text()->ends_with(end); });
   }},
  {"removeprefix",
   [](const Value& s, const Arguments& a) -> Value {
     const auto& start
       = a.need(0, "prefix", "removeprefix").need_text("removeprefix");
     return s.text()->starts_with(start) ? s.text()->substr(start.size())
                                         : *s.text();
   }},
  {"removesuffix",
   [](const Value& s, const Arguments& a) -> Value {
     const auto& end
       = a.need(0, "suffix", "removesuffix").need_text("removesuffix");
     return s.text()->ends_with(end)
              ? s.text()->substr(0, s.text()->size() - end.size())
              : *s.text();
   }},
  {"split", method_split},
  {"replace", method_replace},
  {"join", method_join},
  {"find", method_find},
  {"count", method_count},
  {"splitlines", method_splitlines},
  {"format",
   [](const Value& s, const Arguments& a) -> Value {
     return format_text(*s.text(), a);
   }},
}};

Value pairs_of(const Dict& dict) {
  List out;
  for (const auto& [key, value] : dict)
    out.push_back(Value::tuple({key.value(), value}));
  return out;
}

Value method_get(const Value& self, const Arguments& arguments) {
  const auto key = Key::of(arguments.need(0, "key", "get"));
  const Value* found = key ? find(*self.dict(), *key) : nullptr;
  if (found != nullptr)
    return *found;
  const Value* absent = arguments.find(1, "default");
  return absent == nullptr ? Value(None{}) : *absent;
}

constexpr std::array<std::pair<const char*, Method>, 4> dict_methods{{
  {"items",
   [](const Value& s, const Arguments&) -> Value {
     return pairs_of(*s.dict());
   }},
  {"keys",
   [](const Value& s, const Arguments&) -> Value { return iterate(s); }},
  {"values",
   [](const Value& s, const Arguments&) -> Value {
     List out;
     for (const auto& [key, value] : *s.dict())
       out.push_back(value);
     return out;
   }},
  {"get", method_get},
}};

template <class Table>
Value method_of(const Table& table, const Value& object,
                std::string_view name) {
  for (const auto& [known, method] : table)
    if (known == name)
      return Value::method(object, [object, method](const Arguments& given) {
        return method(object, given);
      });
  return {};
}

/// Methods of Python's str that templates may call but that are missing above:
/// not the same as a name that no text has.
constexpr std::array missing_text_methods{
  "casefold", "center",       "encode",  "expandtabs", "format_map",
  "index",    "isalnum",      "isalpha", "isascii",    "isdecimal",
  "isdigit",  "isidentifier", "islower", "isnumeric",  "isprintable",
  "isspace",  "istitle",      "isupper", "ljust",      "partition",
  "rfind",    "rindex",       "rjust",   "rpartition", "rsplit",
  "swapcase", "translate",    "zfill",
};

Value text_method(const Value& text, std::string_view name) {
  if (std::ranges::find(missing_text_methods, name)
      != missing_text_methods.end())
    throw TemplateError("unsupported construct: the method '"
                        + std::string(name) + "' of a text");
  return method_of(text_methods, text, name);
}

Value method(const Value& object, std::string_view name) {
  if (object.text() != nullptr)
    return text_method(object, name);
  if (object.dict() != nullptr && !object.is_namespace())
    return method_of(dict_methods, object, name);
  return {};
}

Value entry(const Value& object, const Value& key) {
  if (const Dict* dict = object.dict()) {
    const auto wanted = Key::of(key);
    const Value* found = wanted ? find(*dict, *wanted) : nullptr;
    return found == nullptr ? Value() : *found;
  }
  if (object.text() == nullptr && object.list() == nullptr)
    return {};
  if (!key.is_number() || key.as<double>() != nullptr)
    return {};
  const std::int64_t size
    = object.text() != nullptr
        ? length(*object.text())
        : static_cast<std::int64_t>(object.list()->size());
  std::int64_t at = key.integer("an index");
  at += at < 0 ? size : 0;
  if (at < 0 || at >= size)
    return {};
  if (object.list() != nullptr)
    return (*object.list())[static_cast<std::size_t>(at)];
  return std::string(characters(*object.text())[static_cast<std::size_t>(at)]);
}

void refuse_undefined(const Value& object) {
  if (const auto* missing = object.as<Undefined>())
    throw TemplateError("'" + missing->name + "' is undefined");
}

} // namespace

Value attribute(const Value& object, const std::string& name) {
  refuse_undefined(object);
  Value found = method(object, name);
  if (found.undefined())
    found = entry(object, name);
  return found.undefined() ? Value(Undefined{name}) : found;
}

Value item(const Value& object, const Value& key) {
  refuse_undefined(object);
  Value found = entry(object, key);
  if (found.undefined() && key.text() != nullptr)
    found = method(object, *key.text());
  return found.undefined() ? Value(Undefined{key.print()}) : found;
}

} // namespace troupe::models::jinja
