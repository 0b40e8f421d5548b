#include "config/model/hf_object.hpp"

#include "config/base/error.hpp"
#include "config/base/json_levels.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace troupe {

HfJson parse_hf_object(const std::string& json, const std::string& file_name) {
  const auto fail = [&](const std::string& expected, const std::string& got) {
    throw ConfigError({.place = {file_name, 0},
                       .path = "",
                       .expected = expected,
                       .got = got,
                       .hint = hint_of_model_folder});
  };
  if (nests_too_deep(json))
    fail(fmt::format("JSON of at most {} levels", json_levels_limit), "more");
  HfJson tree;
  try {
    tree = HfJson::parse(json);
  } catch (const HfJson::exception& error) {
    // "[json.exception.parse_error.101] parse error at ...: the reason"
    const std::string what = error.what();
    fail("JSON", "something else (" + what.substr(what.find("] ") + 2) + ")");
  }
  if (!tree.is_object())
    fail("a JSON object", "another value");
  return tree;
}

HfObject::HfObject(const HfJson& json, std::string file, std::string prefix)
  : json_(json),
    file_(std::move(file)),
    prefix_(std::move(prefix)) {}

const HfJson* HfObject::find(const std::string& key) const {
  const auto at = json_.find(key);
  return at == json_.end() || at->is_null() ? nullptr : &*at;
}

bool HfObject::has_null(const std::string& key) const {
  const auto at = json_.find(key);
  return at != json_.end() && at->is_null();
}

void HfObject::fail(const std::string& key, const std::string& expected,
                    const std::string& hint) const {
  const HfJson* got = find(key);
  throw ConfigError({.place = {file_, 0},
                     .path = prefix_ + key,
                     .expected = expected,
                     .got = got ? got->dump() : "nothing",
                     .hint = hint});
}

std::int64_t HfObject::size(const std::string& key, std::int64_t fallback,
                            std::int64_t most) const {
  const HfJson* value = find(key);
  if (!value && fallback > 0)
    return fallback;
  if (!value || !value->is_number_integer() || *value < 1 || *value > most)
    fail(key, fmt::format("a whole number from 1 to {}", most));
  return value->get<std::int64_t>();
}

double HfObject::positive(const std::string& key, double fallback) const {
  const HfJson* value = find(key);
  if (!value && fallback > 0)
    return fallback;
  if (!value || !value->is_number() || !(value->get<double>() > 0))
    fail(key, "a number > 0");
  return value->get<double>();
}

bool HfObject::flag(const std::string& key, bool fallback) const {
  const HfJson* value = find(key);
  if (!value)
    return fallback;
  if (!value->is_boolean())
    fail(key, "true or false");
  return value->get<bool>();
}

std::string HfObject::text(const std::string& key,
                           const std::string& fallback) const {
  const HfJson* value = find(key);
  if (!value)
    return fallback;
  if (!value->is_string())
    fail(key, "text");
  return value->get<std::string>();
}

HfObject HfObject::object(const std::string& key) const {
  const HfJson* value = find(key);
  if (!value || !value->is_object())
    fail(key, "an object");
  return {*value, file_, prefix_ + key + "."};
}

std::int32_t HfObject::token(const HfJson& value,
                             const std::string& key) const {
  if (!value.is_number_integer() || value < 0 || value > INT32_MAX)
    fail(key, "a token id >= 0");
  return value.get<std::int32_t>();
}

} // namespace troupe
