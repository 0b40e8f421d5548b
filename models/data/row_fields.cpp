#include "models/data/row_fields.hpp"

#include "models/io/json_text.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

namespace troupe::models::internal {

namespace {

using json = nlohmann::ordered_json;

[[noreturn]] void bad_template(const std::string& field,
                               const std::string& text, Place place) {
  throw ConfigError(
    ConfigError::Parts{std::move(place), "data.fields." + field,
                       "a column or a template like '{question} text'",
                       "'" + text + "'", "'{{' and '}}' for literal braces"});
}

/// Returns nullopt for a brace without its partner, or with nothing inside.
std::optional<FieldMapping::Source> parse_template(const std::string& text) {
  FieldMapping::Source source{true, {{false, ""}}};
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    const bool doubled = at + 1 < text.size() && text[at + 1] == c;
    if (c != '{' && c != '}') {
      source.parts.back().text += c;
    } else if (doubled) {
      source.parts.back().text += c;
      ++at;
    } else {
      const auto end = c == '{' ? text.find('}', at) : std::string::npos;
      if (end == std::string::npos || end == at + 1)
        return std::nullopt;
      source.parts.push_back({true, text.substr(at + 1, end - at - 1)});
      source.parts.push_back({false, ""});
      at = end;
    }
  }
  return source;
}

std::string text_of_json(const json& value) {
  if (value.is_string())
    return value.get<std::string>();
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

/// Returns "a.b.c" inside `row`, or the column of exactly that name; may be
/// null.
const json* find_column(const json& row, const std::string& name) {
  if (const auto it = row.find(name); it != row.end())
    return &*it;
  const json* at = &row;
  for (std::size_t begin = 0; begin <= name.size();) {
    const auto dot = std::min(name.find('.', begin), name.size());
    if (!at->is_object())
      return nullptr;
    const auto it = at->find(name.substr(begin, dot - begin));
    if (it == at->end())
      return nullptr;
    at = &*it;
    begin = dot + 1;
  }
  return at;
}

} // namespace

FieldMapping::FieldMapping(const std::map<std::string, std::string>& fields,
                           const std::map<std::string, Place>& places,
                           std::string word)
  : word_(std::move(word)) {
  for (const auto& [field, text] : fields) {
    const auto it = places.find("data.fields." + field);
    const Place place = it == places.end() ? Place{} : it->second;
    if (text.empty())
      bad_template(field, text, place);
    if (text.find_first_of("{}") == std::string::npos) {
      sources_[field] = {false, {{true, text}}};
      continue;
    }
    auto source = parse_template(text);
    if (!source)
      bad_template(field, text, place);
    sources_[field] = std::move(*source);
  }
}

const FieldMapping::Source* FieldMapping::find(const std::string& field) const {
  const auto it = sources_.find(field);
  return it == sources_.end() ? nullptr : &it->second;
}

RowFields::RowFields(const FieldMapping& mapping, const json& row, Place place)
  : mapping_(mapping),
    row_(row),
    place_(std::move(place)) {
  if (!row.is_object())
    throw ConfigError(ConfigError::Parts{place_, "", "a row (a JSON object)",
                                         kind_of(row), ""});
}

const json& RowFields::column(const std::string& field,
                              const std::string& name) const {
  const json* found = find_column(row_, name);
  if (found == nullptr || found->is_null())
    expected(field, "a value in column '" + name + "'",
             "nothing (the row has " + columns() + ")");
  return *found;
}

std::optional<json> RowFields::value(const std::string& field) const {
  const FieldMapping::Source* source = mapping_.find(field);
  if (source == nullptr) {
    const auto it = row_.find(field);
    if (it == row_.end() || it->is_null())
      return std::nullopt;
    return *it;
  }
  if (!source->is_template)
    return column(field, source->parts[0].text);
  std::string text;
  for (const auto& part : source->parts)
    text += part.is_column ? text_of_json(column(field, part.text)) : part.text;
  return json(std::move(text));
}

bool RowFields::has(const std::string& field) const {
  if (mapping_.find(field) != nullptr)
    return true; // then a missing column is an error of the row
  const auto it = row_.find(field);
  return it != row_.end() && !it->is_null();
}

bool RowFields::is_mapped(const std::string& field) const {
  return mapping_.find(field) != nullptr;
}

void RowFields::check_mapped() const {
  for (const auto& [field, source] : mapping_.sources())
    for (const auto& part : source.parts)
      if (part.is_column)
        column(field, part.text);
}

bool RowFields::is_text(const std::string& field) const {
  const auto found = value(field);
  return found && found->is_string();
}

std::string RowFields::text(const std::string& field) const {
  const auto found = value(field);
  if (!found)
    expected(field, "text", "nothing (the row has " + columns() + ")",
             mapping_.hint(field));
  if (!found->is_string())
    expected(field, "text", kind_of(*found));
  return found->get<std::string>();
}

std::string RowFields::columns() const {
  std::string names;
  for (const auto& [name, value] : row_.items())
    names += (names.empty() ? "" : ", ") + name;
  return names.empty() ? "no column" : names;
}

std::string RowFields::text_of_any(const std::string& field) const {
  const auto found = value(field);
  return found ? text_of_json(*found) : "";
}

std::vector<std::int32_t> RowFields::ids(const std::string& field,
                                         std::int32_t end_id) const {
  const std::string what
    = "a list of token ids from 0 to " + std::to_string(end_id - 1);
  const auto found = value(field);
  if (!found || !found->is_array())
    expected(field, what, found ? kind_of(*found) : "nothing");
  std::vector<std::int32_t> ids;
  ids.reserve(found->size());
  for (const json& entry : *found) {
    const bool fits = entry.is_number_integer() && entry >= 0 && entry < end_id;
    if (!fits)
      expected(field, what, text_of_json(entry).substr(0, 40));
    ids.push_back(entry.get<std::int32_t>());
  }
  return ids;
}

double RowFields::number(const std::string& field) const {
  const auto found = value(field);
  if (!found || !found->is_number())
    expected(field, "a number", found ? kind_of(*found) : "nothing",
             mapping_.hint(field));
  const auto number = found->get<double>();
  if (!std::isfinite(number))
    expected(field, "a number", "one that is too large");
  return number;
}

bool RowFields::boolean(const std::string& field) const {
  const auto found = value(field);
  if (!found || !found->is_boolean())
    expected(field, "true or false", found ? kind_of(*found) : "nothing",
             mapping_.hint(field));
  return found->get<bool>();
}

bool RowFields::is_list(const std::string& field) const {
  const auto found = value(field);
  return found && found->is_array();
}

json RowFields::messages(const std::string& field) const {
  const std::string what = "a list of messages like {\"role\": \"user\", "
                           "\"content\": \"..\"}";
  auto found = value(field);
  if (!found || !found->is_array() || found->empty())
    expected(field, what,
             found && found->is_array() ? "an empty list"
             : found                    ? kind_of(*found)
                                        : "nothing");
  for (const json& message : *found)
    if (!message.is_object() || !message.contains("role")
        || !message["role"].is_string())
      expected(field, what, text_of_json(message).substr(0, 60));
  return std::move(*found);
}

void RowFields::expected(const std::string& field, const std::string& what,
                         const std::string& got,
                         const std::string& hint) const {
  throw ConfigError(ConfigError::Parts{place_, field, what, got, hint});
}

} // namespace troupe::models::internal
