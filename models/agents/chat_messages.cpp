#include "models/agents/chat_messages.hpp"

#include "models/agents/api_error.hpp"
#include "models/agents/shallow_json.hpp"

#include <nlohmann/json.hpp>

#include <string>

namespace troupe::models {

namespace {

using nlohmann::ordered_json;

bool has_member(const ordered_json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && !found->is_null();
}

/// Returns the text of a content: a text, nothing, or a list of parts.
std::string content_text(const ordered_json& content,
                         const std::string& where) {
  if (content.is_null())
    return "";
  if (content.is_string())
    return content.get<std::string>();
  std::string text;
  if (!content.is_array())
    throw ApiError(where + ".content is a text or a list of texts", "messages");
  for (const auto& part : content) {
    if (!part.is_object() || !part.contains("text")
        || !part["text"].is_string())
      throw ApiError(where
                       + ".content has a part that is no text; this model "
                         "reads texts only",
                     "messages");
    text += part["text"].get<std::string>();
  }
  return text;
}

/// Returns the value that a text of JSON has; other texts as they are.
ordered_json argument_value(const ordered_json& arguments) {
  if (!arguments.is_string())
    return arguments;
  const auto text = arguments.get<std::string>();
  auto value = parse_shallow_json(text);
  return value.is_discarded() ? arguments : value;
}

ordered_json normal_calls(const ordered_json& calls, const std::string& where) {
  ordered_json normal = ordered_json::array();
  if (!calls.is_array())
    throw ApiError(where + ".tool_calls is a list", "messages");
  for (const auto& call : calls) {
    if (!call.is_object() || !call.contains("function")
        || !call["function"].is_object() || !call["function"].contains("name"))
      throw ApiError(where + ".tool_calls has a call without function.name",
                     "messages");
    const auto& function = call["function"];
    ordered_json one;
    if (has_member(call, "id"))
      one["id"] = call["id"];
    one["type"] = "function";
    one["function"]
      = {{"name", function["name"]},
         {"arguments",
          argument_value(function.value("arguments", ordered_json::object()))}};
    normal.push_back(std::move(one));
  }
  return normal;
}

ordered_json normal_message(const ordered_json& message,
                            const std::string& where) {
  if (!message.is_object() || !has_member(message, "role")
      || !message["role"].is_string())
    throw ApiError(where + " is an object with a role", "messages");
  ordered_json normal;
  normal["role"] = message["role"];
  normal["content"]
    = content_text(message.value("content", ordered_json()), where);
  for (const char* name : {"reasoning_content", "name", "tool_call_id"})
    if (has_member(message, name))
      normal[name] = message[name];
  if (has_member(message, "tool_calls") && !message["tool_calls"].empty())
    normal["tool_calls"] = normal_calls(message["tool_calls"], where);
  return normal;
}

/// Returns the functions that are called, with their arguments; members of
/// arguments in any order.
nlohmann::json called_functions(const ordered_json& message) {
  auto functions = nlohmann::json::array();
  if (message.contains("tool_calls"))
    for (const auto& call : message["tool_calls"])
      functions.push_back(nlohmann::json::parse(call["function"].dump()));
  return functions;
}

} // namespace

ordered_json normal_messages(const ordered_json& messages) {
  if (!messages.is_array() || messages.empty())
    throw ApiError("messages is a list of at least one message", "messages");
  ordered_json normal = ordered_json::array();
  for (std::size_t i = 0; i < messages.size(); ++i)
    normal.push_back(
      normal_message(messages[i], "messages[" + std::to_string(i) + "]"));
  return normal;
}

bool is_same_message(const ordered_json& a, const ordered_json& b) {
  return a["role"] == b["role"] && a["content"] == b["content"]
         && called_functions(a) == called_functions(b);
}

} // namespace troupe::models
