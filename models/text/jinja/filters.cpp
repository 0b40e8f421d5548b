// Filters of templates (declared in builtins.hpp).
#include "models/text/jinja/builtins.hpp"
#include "models/text/jinja/json_style.hpp"
#include "models/text/jinja/text.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

namespace troupe::models::jinja {

namespace {

using Filter = Value (*)(const Value& value, const Arguments& arguments);

Value filter_length(const Value& value, const Arguments&) {
  if (const auto* text = value.text())
    return length(*text);
  if (const Dict* dict = value.dict())
    return static_cast<std::int64_t>(dict->size());
  if (const List* list = value.list())
    return static_cast<std::int64_t>(list->size());
  return static_cast<std::int64_t>(iterate(value).size());
}

Value filter_default(const Value& value, const Arguments& arguments) {
  const Value* empty_too = arguments.find(1, "boolean");
  const bool replace
    = value.undefined()
      || (empty_too != nullptr && empty_too->truth() && !value.truth());
  if (!replace)
    return value;
  const Value* absent = arguments.find(0, "default_value");
  return absent == nullptr ? Value("") : *absent;
}

/// Returns entry.a.b for `path` "a.b".
Value filter_entry(Value value, const Value& path) {
  if (path.text() == nullptr)
    return item(value, path);
  for (const std::string_view name : split(*path.text(), ".", -1))
    value = item(value, std::string(name));
  return value;
}

Value filter_join(const Value& value, const Arguments& arguments) {
  const Value* by = arguments.find(0, "d");
  const Value* path = arguments.find(1, "attribute");
  std::string out;
  bool first = true;
  for (const Value& entry : iterate(value)) {
    if (!first && by != nullptr)
      append(out, by->print());
    append(out, (path == nullptr ? entry : filter_entry(entry, *path)).print());
    first = false;
  }
  return out;
}

Value filter_indent(const Value& value, const Arguments& arguments) {
  const Value* width = arguments.find(0, "width");
  const Value* first = arguments.find(1, "first");
  const Value* blank = arguments.find(2, "blank");
  std::string by = "    ";
  if (width != nullptr)
    by = width->text() != nullptr ? *width->text()
                                  : arithmetic("*", " ", *width).print();
  std::string out;
  const std::string text = value.print();
  const auto lines = split(text, "\n", -1);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const bool indented
      = i == 0 ? first != nullptr && first->truth()
               : !lines[i].empty() || (blank != nullptr && blank->truth());
    append(out, i > 0 ? "\n" : "");
    append(out, indented ? by : "");
    append(out, lines[i]);
  }
  return out;
}

Value filter_tojson(const Value& value, const Arguments& arguments) {
  return value.to_json(json_style(arguments));
}

Value filter_int(const Value& value, const Arguments& arguments) {
  const Value* absent = arguments.find(0, "default");
  const Value fallback = absent == nullptr ? Value(std::int64_t{0}) : *absent;
  if (const double* real = value.as<double>())
    return std::abs(*real) < 9e18 ? Value(static_cast<std::int64_t>(*real))
                                  : fallback;
  if (value.is_number())
    return value.integer("int");
  if (value.text() == nullptr)
    return fallback;
  const std::string text = strip(*value.text(), "", Side::both);
  double number = 0;
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  if (read.ec != std::errc() || read.ptr != end || !(std::abs(number) < 9e18))
    return fallback;
  return static_cast<std::int64_t>(number);
}

Value filter_float(const Value& value, const Arguments& arguments) {
  const Value* absent = arguments.find(0, "default");
  if (value.is_number())
    return value.real();
  double number = 0;
  if (value.text() != nullptr) {
    const std::string text = strip(*value.text(), "", Side::both);
    const char* end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, number);
    if (read.ec == std::errc() && read.ptr == end)
      return number;
  }
  return absent == nullptr ? Value(0.0) : *absent;
}

Value filter_reverse(const Value& value, const Arguments&) {
  List entries = iterate(value);
  std::ranges::reverse(entries);
  if (value.text() == nullptr)
    return entries;
  std::string out;
  for (const Value& entry : entries)
    out += *entry.text();
  return out;
}

Value filter_sort(const Value& value, const Arguments& arguments) {
  const Value* reverse = arguments.find(0, "reverse");
  const Value* exact = arguments.find(1, "case_sensitive");
  const Value* path = arguments.find(2, "attribute");
  const auto key = [&](const Value& entry) {
    const Value part = path == nullptr ? entry : filter_entry(entry, *path);
    const bool fold = exact == nullptr || !exact->truth();
    return fold && part.text() != nullptr ? Value(lower(*part.text())) : part;
  };
  std::vector<std::pair<Value, Value>> keyed;
  for (const Value& entry : iterate(value))
    keyed.emplace_back(key(entry), entry);
  const bool falling = reverse != nullptr && reverse->truth();
  std::ranges::stable_sort(
    keyed,
    [&](const Value& a, const Value& b) {
      return falling ? less(b, a) : less(a, b);
    },
    &std::pair<Value, Value>::first);
  List sorted;
  for (auto& entry : keyed)
    sorted.push_back(std::move(entry.second));
  return sorted;
}

Value filter_unique(const Value& value, const Arguments&) {
  List out;
  for (const Value& entry : iterate(value))
    if (std::ranges::none_of(
          out, [&](const Value& known) { return equal(known, entry); }))
      out.push_back(entry);
  return out;
}

/// As Jinja, of nothing (also of none and 0) nothing is made.
Value filter_map(const Value& value, const Arguments& arguments) {
  if (!value.truth())
    return List{};
  const Value* path = arguments.find(SIZE_MAX, "attribute");
  const Value* absent = arguments.find(SIZE_MAX, "default");
  ListInMaking out;
  for (const Value& entry : iterate(value)) {
    Value made;
    if (path != nullptr) {
      made = filter_entry(entry, *path);
      if (made.undefined() && absent != nullptr)
        made = *absent;
    } else {
      const std::string& name
        = arguments.need(0, "filter", "map").need_text("map");
      if (!has_filter(name))
        throw TemplateError("unsupported construct: the filter '" + name + "'");
      Arguments rest = arguments;
      rest.positional.erase(rest.positional.begin());
      made = apply_filter(name, entry, rest);
    }
    out.add(std::move(made));
  }
  return out;
}

/// select, reject and their ..attr forms: keeps what the test says, of nothing
/// (also of none and 0) nothing.
Value filter_choose(const Value& value, Arguments arguments, bool by_attribute,
                    bool keep) {
  if (!value.truth())
    return List{};
  Value path;
  if (by_attribute) {
    path = arguments.need(0, "attribute", "selectattr");
    arguments.positional.erase(arguments.positional.begin());
  }
  std::string test;
  if (!arguments.positional.empty()) {
    test = arguments.positional[0].need_text("select");
    arguments.positional.erase(arguments.positional.begin());
    if (!has_test(test))
      throw TemplateError("unsupported construct: the test '" + test + "'");
  }
  List out;
  for (const Value& entry : iterate(value)) {
    const Value part = by_attribute ? filter_entry(entry, path) : entry;
    const bool holds
      = test.empty() ? part.truth() : apply_test(test, part, arguments);
    if (holds == keep)
      out.push_back(entry);
  }
  return out;
}

Value filter_extreme(const Value& value, bool largest) {
  const List entries = iterate(value);
  if (entries.empty())
    return Undefined{largest ? "max" : "min"};
  const auto at = largest ? std::ranges::max_element(entries, less)
                          : std::ranges::min_element(entries, less);
  return *at;
}

Value filter_items(const Value& value, const Arguments&) {
  if (value.undefined())
    return List{};
  if (value.dict() == nullptr || value.is_namespace())
    throw TemplateError(std::string("items needs a mapping, got ")
                        + value.kind());
  return (*attribute(value, "items").function())({});
}

Value filter_dictsort(const Value& value, const Arguments&) {
  const Value pairs = filter_items(value, {});
  Arguments by_key;
  by_key.named.emplace_back("attribute", std::int64_t{0});
  return filter_sort(pairs, by_key);
}

Value filter_round(const Value& value, const Arguments& arguments) {
  const Value* digits = arguments.find(0, "precision");
  const double scale = std::pow(
    10.0,
    static_cast<double>(digits == nullptr ? 0 : digits->integer("round")));
  return std::nearbyint(value.real() * scale) / scale;
}

Value filter_sum(const Value& value, const Arguments& arguments) {
  const Value* path = arguments.find(0, "attribute");
  const Value* start = arguments.find(1, "start");
  Value sum = start == nullptr ? Value(std::int64_t{0}) : *start;
  for (const Value& entry : iterate(value))
    sum = arithmetic("+", sum,
                     path == nullptr ? entry : filter_entry(entry, *path));
  return sum;
}

Value filter_replace(const Value& value, const Arguments& arguments) {
  const Value* count = arguments.find(2, "count");
  return replace(value.print(), arguments.need(0, "old", "replace").print(),
                 arguments.need(1, "new", "replace").print(),
                 count == nullptr || count->none() ? -1
                                                   : count->integer("replace"));
}

Value filter_trim(const Value& value, const Arguments& arguments) {
  const Value* chars = arguments.find(0, "chars");
  return strip(value.print(), chars == nullptr ? "" : chars->print(),
               Side::both);
}

Value filter_abs(const Value& value, const Arguments&) {
  return less(value, std::int64_t{0}) ? arithmetic("-", std::int64_t{0}, value)
                                      : value;
}

std::map<std::string, Filter> named_filters() {
  return {
    {"abs", filter_abs},           {"count", filter_length},
    {"d", filter_default},         {"default", filter_default},
    {"dictsort", filter_dictsort}, {"float", filter_float},
    {"indent", filter_indent},     {"int", filter_int},
    {"items", filter_items},       {"join", filter_join},
    {"length", filter_length},     {"map", filter_map},
    {"replace", filter_replace},   {"reverse", filter_reverse},
    {"round", filter_round},       {"sort", filter_sort},
    {"sum", filter_sum},           {"tojson", filter_tojson},
    {"trim", filter_trim},         {"unique", filter_unique},
  };
}

std::map<std::string, Filter> short_filters() {
  return {
    {"capitalize",
     [](const Value& v, const Arguments&) -> Value {
       return capitalize(v.print());
     }},
    {"first",
     [](const Value& v, const Arguments&) -> Value {
       const List entries = iterate(v);
       return entries.empty() ? Value(Undefined{"first"}) : entries.front();
     }},
    {"last",
     [](const Value& v, const Arguments&) -> Value {
       const List entries = iterate(v);
       return entries.empty() ? Value(Undefined{"last"}) : entries.back();
     }},
    {"list",
     [](const Value& v, const Arguments&) -> Value { return iterate(v); }},
    {"lower",
     [](const Value& v, const Arguments&) -> Value {
       return lower(v.print());
     }},
    {"max",
     [](const Value& v, const Arguments&) -> Value {
       return filter_extreme(v, true);
     }},
    {"min",
     [](const Value& v, const Arguments&) -> Value {
       return filter_extreme(v, false);
     }},
    {"reject",
     [](const Value& v, const Arguments& a) -> Value {
       return filter_choose(v, a, false, false);
     }},
    {"rejectattr",
     [](const Value& v, const Arguments& a) -> Value {
       return filter_choose(v, a, true, false);
     }},
    {"safe", [](const Value& v, const Arguments&) -> Value { return v; }},
    {"select",
     [](const Value& v, const Arguments& a) -> Value {
       return filter_choose(v, a, false, true);
     }},
    {"selectattr",
     [](const Value& v, const Arguments& a) -> Value {
       return filter_choose(v, a, true, true);
     }},
    {"string",
     [](const Value& v, const Arguments&) -> Value { return v.print(); }},
    {"title",
     [](const Value& v, const Arguments&) -> Value {
       return title(v.print());
     }},
    {"upper",
     [](const Value& v, const Arguments&) -> Value {
       return upper(v.print());
     }},
  };
}

const std::map<std::string, Filter>& all_filters() {
  static const std::map<std::string, Filter> filters = [] {
    auto all = named_filters();
    all.merge(short_filters());
    return all;
  }();
  return filters;
}

} // namespace

bool has_filter(const std::string& name) {
  return all_filters().contains(name);
}

Value apply_filter(const std::string& name, const Value& value,
                   const Arguments& arguments) {
  arguments.count();
  const auto filter = all_filters().find(name);
  if (filter == all_filters().end())
    throw TemplateError("unsupported construct: the filter '" + name + "'");
  return filter->second(value, arguments);
}

} // namespace troupe::models::jinja
