// How values look as text: str(), repr() and JSON (declared in value.hpp).
#include "models/jinja/steps.hpp"
#include "models/jinja/text.hpp"
#include "models/jinja/value.hpp"

#include <nlohmann/json.hpp>

#include <array>
#include <charconv>
#include <cmath>

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

std::string value_quoted(const std::string& text) {
  count_bytes(text.size());
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
      append(out, value_quoted(key) + ": ");
      value_write_repr(out, entry);
    }
    return append(out, "}");
  }
  append(out, value.print());
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
    count_copy(value);
    if (out.size() > size_limit) // indents are not in a value's size
      throw TemplateError("tojson makes more than 64 MiB");
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

std::string Value::to_json(std::int64_t indent) const {
  JsonWriter writer{indent, ""};
  writer.write(*this, 0);
  return std::move(writer.out);
}

} // namespace troupe::models::jinja
