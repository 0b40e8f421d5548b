#include "models/io/json_at.hpp"

#include "config/base/error.hpp"
#include "models/io/json_text.hpp"

#include <nlohmann/json.hpp>

#include <utility>

namespace troupe::models::internal {

namespace {

/// Returns the value as a message shows it: short and on one line.
std::string json_shown(const nlohmann::json& value) {
  constexpr std::size_t longest = 40;
  if (value.is_structured() || value.is_null())
    return kind_of(value);
  const std::string text
    = value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return text.size() <= longest ? text : text.substr(0, longest) + "...";
}

} // namespace

JsonAt::JsonAt(const nlohmann::json& value, std::string file, std::string path)
  : value_(&value),
    file_(std::move(file)),
    path_(std::move(path)) {}

bool JsonAt::has(const std::string& key) const {
  if (!value_->is_object())
    return false;
  const auto it = value_->find(key);
  return it != value_->end() && !it->is_null();
}

bool JsonAt::is_null() const {
  return value_->is_null();
}

bool JsonAt::is_text() const {
  return value_->is_string();
}

bool JsonAt::is_list() const {
  return value_->is_array();
}

bool JsonAt::is_object() const {
  return value_->is_object();
}

JsonAt JsonAt::at(const std::string& key) const {
  if (!value_->is_object())
    expected("an object");
  const auto it = value_->find(key);
  const std::string path = path_.empty() ? key : path_ + "." + key;
  if (it == value_->end())
    throw ConfigError(Place{file_, 0},
                      path + ": expected a value, got nothing");
  return {*it, file_, path};
}

JsonAt JsonAt::at(std::size_t index) const {
  if (index >= size())
    expected("a list of at least " + std::to_string(index + 1) + " values");
  return {(*value_)[index], file_, path_ + "[" + std::to_string(index) + "]"};
}

std::size_t JsonAt::size() const {
  if (!value_->is_array())
    expected("a list");
  return value_->size();
}

std::string JsonAt::text() const {
  if (!value_->is_string())
    expected("text");
  return value_->get<std::string>();
}

bool JsonAt::boolean() const {
  if (!value_->is_boolean())
    expected("true or false");
  return value_->get<bool>();
}

double JsonAt::number() const {
  if (!value_->is_number())
    expected("a number");
  return value_->get<double>();
}

std::int64_t JsonAt::integer(std::int64_t least, std::int64_t most) const {
  const std::string what = "an integer from " + std::to_string(least) + " to "
                           + std::to_string(most);
  if (!value_->is_number_integer()
      || (value_->is_number_unsigned()
          && value_->get<std::uint64_t>() > std::uint64_t{INT64_MAX}))
    expected(what);
  const auto number = value_->get<std::int64_t>();
  if (number < least || number > most)
    expected(what);
  return number;
}

std::string JsonAt::text_or(const std::string& key,
                            const std::string& absent) const {
  return has(key) ? at(key).text() : absent;
}

bool JsonAt::boolean_or(const std::string& key, bool absent) const {
  return has(key) ? at(key).boolean() : absent;
}

void JsonAt::for_each(
  const std::function<void(const std::string&, JsonAt)>& visit) const {
  if (!value_->is_object())
    expected("an object");
  for (const auto& [key, value] : value_->items())
    visit(key, JsonAt(value, file_, path_.empty() ? key : path_ + "." + key));
}

void JsonAt::expected(const std::string& what) const {
  throw ConfigError(
    ConfigError::Parts{Place{file_, 0}, path_, what, json_shown(*value_), ""});
}

void JsonAt::unsupported(const std::string& component) const {
  throw ConfigError(Place{file_, 0}, (path_.empty() ? "" : path_ + ": ")
                                       + component + " is not supported");
}

void JsonAt::wrong(const std::string& sentence) const {
  throw ConfigError(Place{file_, 0},
                    (path_.empty() ? "" : path_ + ": ") + sentence);
}

} // namespace troupe::models::internal
