#include "models/io/json_text.hpp"

#include "config/base/error.hpp"
#include "config/base/json_levels.hpp"
#include "models/io/mapped_file.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace troupe::models::internal {

namespace {

std::string json_reason(const std::string& what) {
  // the library's text is "[json.exception.parse_error.101] parse error at line
  // 1, column 5: the reason"; our line number replaces its own
  const auto colon = what.find(": ");
  return colon == std::string::npos ? what : what.substr(colon + 2);
}

[[noreturn]] void not_json(const Place& place, const std::string& reason) {
  throw ConfigError({.place = place,
                     .path = "",
                     .expected = "JSON",
                     .got = "something else (" + reason + ")",
                     .hint = "'python3 -m json.tool' on it"});
}

template <class Json>
Json json_parsed(std::string_view text, const std::string& file,
                 int first_line) {
  const auto nul = text.find('\0');
  if (nul != std::string_view::npos)
    not_json({file, first_line
                      + static_cast<int>(
                        std::count(text.begin(), text.begin() + nul, '\n'))},
             "a zero byte");
  if (nests_too_deep(text))
    not_json({file, first_line}, "more than "
                                   + std::to_string(json_levels_limit)
                                   + " lists or objects in each other");
  try {
    return Json::parse(text.begin(), text.end());
  } catch (const typename Json::parse_error& error) {
    const auto place = std::min<std::size_t>(error.byte, text.size());
    const auto lines = std::count(
      text.begin(),
      text.begin() + static_cast<std::ptrdiff_t>(place == 0 ? 0 : place - 1),
      '\n');
    not_json({file, first_line + static_cast<int>(lines)},
             json_reason(error.what()));
  } catch (const typename Json::exception& error) {
    not_json({file, first_line}, json_reason(error.what()));
  }
}

template <class Json>
std::string json_kind(const Json& value) {
  switch (value.type()) {
  case nlohmann::json::value_t::null:
    return "null";
  case nlohmann::json::value_t::boolean:
    return "a boolean";
  case nlohmann::json::value_t::string:
    return "text";
  case nlohmann::json::value_t::array:
    return "a list";
  case nlohmann::json::value_t::object:
    return "an object";
  default:
    return "a number";
  }
}

} // namespace

nlohmann::json parse_json(std::string_view text, const std::string& file,
                          int first_line) {
  return json_parsed<nlohmann::json>(text, file, first_line);
}

nlohmann::ordered_json parse_ordered_json(std::string_view text,
                                          const std::string& file,
                                          int first_line) {
  return json_parsed<nlohmann::ordered_json>(text, file, first_line);
}

nlohmann::json read_json(const std::filesystem::path& path) {
  const MappedFile file(path);
  return parse_json(file.text(), path.string());
}

std::string kind_of(const nlohmann::json& value) {
  return json_kind(value);
}

std::string kind_of(const nlohmann::ordered_json& value) {
  return json_kind(value);
}

} // namespace troupe::models::internal
