// How values look as text: str(), repr() and JSON (declared in value.hpp).
#include "models/io/utf8.hpp"
#include "models/text/jinja/json_style.hpp"
#include "models/text/jinja/steps.hpp"
#include "models/text/jinja/text.hpp"
#include "models/text/jinja/value.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace troupe::models::jinja {

namespace {

using Json = nlohmann::ordered_json;

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

/// \x07, \u2028, \U000e0001: a character that cannot be printed, as repr().
std::string value_code(std::string_view character) {
  const auto code = internal::code_point_at(character, 0).value;
  std::array<char, 16> buffer{};
  const char* form = code < 0x100     ? "\\x%02x"
                     : code < 0x10000 ? "\\u%04x"
                                      : "\\U%08x";
  const int size = std::snprintf(buffer.data(), buffer.size(), form,
                                 static_cast<unsigned>(code));
  return {buffer.data(), static_cast<std::size_t>(size)};
}

std::string value_quoted(const std::string& text) {
  count_bytes(text.size());
  const bool single = text.find('\'') == std::string::npos
                      || text.find('"') != std::string::npos;
  const char quote = single ? '\'' : '"';
  std::string out(1, quote);
  for (const std::string_view c : characters(text)) {
    if (c == "\n")
      out += "\\n";
    else if (c == "\t")
      out += "\\t";
    else if (c == "\r")
      out += "\\r";
    else if (c == "\\" || c.front() == quote)
      out += "\\" + std::string(c);
    else
      out += is_printable(c) ? std::string(c) : value_code(c);
  }
  return out + quote;
}

void value_write_repr(std::string& out, const Value& value) {
  count_copy(value);
  if (const auto* text = value.text())
    return append(out, value_quoted(*text));
  const char* between = "";
  if (const List* list = value.list()) {
    append(out, value.is_tuple() ? "(" : "[");
    for (const Value& entry : *list) {
      append(out, std::exchange(between, ", "));
      value_write_repr(out, entry);
    }
    return append(out, !value.is_tuple()   ? "]"
                       : list->size() == 1 ? ",)"
                                           : ")");
  }
  if (const Dict* dict = value.dict()) {
    append(out, "{");
    for (const auto& [key, entry] : *dict) {
      append(out, std::exchange(between, ", "));
      append(out, key.value().repr() + ": ");
      value_write_repr(out, entry);
    }
    return append(out, "}");
  }
  append(out, value.print());
}

struct JsonWriter {
  const JsonStyle& style;
  std::string out;

  void add(std::string_view text) {
    if (out.size() + text.size() > size_limit) // more than a value's own size
      throw TemplateError("tojson makes more than 64 MiB");
    out += text;
  }
  void line(int depth) {
    if (!style.indent)
      return;
    add("\n");
    for (int i = 0; i < depth; ++i)
      add(*style.indent);
  }
  void text(const std::string& text) {
    add(Json(text).dump(-1, ' ', style.ascii, Json::error_handler_t::replace));
  }
  void separate(bool first, int depth) {
    if (!first)
      add(style.between);
    line(depth);
  }
  void key(const Key& key) {
    if (const auto* own = key.text())
      text(*own);
    else
      out += "\"" + key.value().to_json(style) + "\"";
    add(style.behind_key);
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
    std::vector<std::pair<Value, const Dict::value_type*>> members;
    for (const auto& member : dict)
      members.emplace_back(member.first.value(), &member);
    if (style.sorted)
      std::ranges::stable_sort(members, less,
                               [](const auto& one) { return one.first; });
    out += "{";
    for (std::size_t i = 0; i < members.size(); ++i) {
      separate(i == 0, depth + 1);
      key(members[i].second->first);
      write(members[i].second->second, depth + 1);
    }
    if (!dict.empty())
      line(depth);
    out += "}";
  }
  void write(const Value& value, int depth) {
    count_copy(value);
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
  return repr();
}

std::string Value::repr() const {
  std::string out;
  value_write_repr(out, *this);
  return out;
}

std::string Value::to_json(const JsonStyle& style) const {
  JsonWriter writer{style, ""};
  writer.write(*this, 0);
  return std::move(writer.out);
}

} // namespace troupe::models::jinja
