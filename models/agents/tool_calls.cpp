#include "models/agents/tool_calls.hpp"

#include "models/agents/shallow_json.hpp"

#include <nlohmann/json.hpp>

#include <optional>
#include <utility>

namespace troupe::models {

namespace {

using nlohmann::ordered_json;

constexpr std::string_view call_opens = "<tool_call>";
constexpr std::string_view call_closes = "</tool_call>";
constexpr std::string_view call_blanks = " \t\r\n";

std::string_view without_last_blanks(std::string_view text) {
  const auto last = text.find_last_not_of(call_blanks);
  return text.substr(0, last == text.npos ? 0 : last + 1);
}

std::string_view without_first_blanks(std::string_view text) {
  const auto first = text.find_first_not_of(call_blanks);
  return first == text.npos ? std::string_view{} : text.substr(first);
}

std::optional<ToolCall> parsed_call(std::string_view json) {
  const auto value = parse_shallow_json(json);
  if (!value.is_object() || !value.contains("name")
      || !value["name"].is_string())
    return std::nullopt;
  auto arguments = value.value("arguments", ordered_json::object());
  if (!arguments.is_object())
    return std::nullopt;
  return ToolCall{value["name"].get<std::string>(), std::move(arguments)};
}

/// Takes one call off the front of `text`; nothing: there is none.
std::optional<ToolCall> take_call(std::string_view& text) {
  text = without_first_blanks(text);
  if (!text.starts_with(call_opens))
    return std::nullopt;
  text.remove_prefix(call_opens.size());
  const auto end = text.find(call_closes);
  const auto json = text.substr(0, end);
  text.remove_prefix(end == text.npos ? text.size() : end + call_closes.size());
  return parsed_call(json);
}

} // namespace

SaidText split_tool_calls(std::string_view text) {
  const SaidText plain{std::string(text), {}};
  const auto first = text.find(call_opens);
  if (first == text.npos)
    return plain;
  SaidText said{std::string(without_last_blanks(text.substr(0, first))), {}};
  for (auto rest = text.substr(first); !without_first_blanks(rest).empty();) {
    auto call = take_call(rest);
    if (!call)
      return plain;
    said.calls.push_back(std::move(*call));
  }
  return said;
}

} // namespace troupe::models
