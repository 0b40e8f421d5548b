#include "models/agents/api_request.hpp"

#include "models/agents/api_error.hpp"
#include "models/agents/chat_messages.hpp"
#include "models/agents/shallow_json.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace troupe::models {

namespace {

using nlohmann::ordered_json;

ordered_json parse_object(std::string_view body) {
  auto value = parse_shallow_json(body);
  if (!value.is_object())
    throw ApiError("the body is a JSON object");
  return value;
}

/// Returns a member; null if it is not there.
const ordered_json& member_of(const ordered_json& body, const char* name) {
  static const ordered_json nothing;
  const auto found = body.find(name);
  return found == body.end() ? nothing : *found;
}

bool flag_of(const ordered_json& body, const char* name) {
  const auto& value = member_of(body, name);
  if (value.is_null())
    return false;
  if (!value.is_boolean())
    throw ApiError(std::string(name) + " is true or false", name);
  return value.get<bool>();
}

std::uint32_t count_of(const ordered_json& body, const char* name,
                       std::uint32_t most) {
  const auto& value = member_of(body, name);
  if (value.is_null())
    return 0;
  if (!value.is_number_integer() || value.get<std::int64_t>() < 1
      || value.get<std::int64_t>() > most)
    throw ApiError(std::string(name) + " is a whole number from 1 to "
                     + std::to_string(most),
                   name);
  return value.get<std::uint32_t>();
}

std::vector<std::int32_t> ids_in(const ordered_json& list, const char* name) {
  std::vector<std::int32_t> ids;
  for (const auto& id : list) {
    if (!id.is_number_integer() || id.get<std::int64_t>() < 0
        || id.get<std::int64_t>() > std::numeric_limits<std::int32_t>::max())
      throw ApiError(std::string(name) + " is a list of token ids", name);
    ids.push_back(id.get<std::int32_t>());
  }
  if (ids.empty())
    throw ApiError(std::string(name) + " has at least one token id", name);
  return ids;
}

/// Refuses fields whose values ask for what is not there.
void refuse_impossible(const ordered_json& body) {
  const auto asks = [&](const char* name) {
    const auto& value = member_of(body, name);
    return !value.is_null() && value != "" && !value.empty();
  };
  if (asks("logit_bias"))
    throw ApiError("logit_bias is not supported: the run draws tokens as it "
                   "trains on them",
                   "logit_bias");
  const auto& format = member_of(body, "response_format");
  if (!format.is_null()
      && (!format.is_object()
          || format.value("type", ordered_json()) != "text"))
    throw ApiError("response_format is text", "response_format");
  const auto& choice = member_of(body, "tool_choice");
  if (!choice.is_null() && choice != "auto" && choice != "none")
    throw ApiError("tool_choice is auto or none", "tool_choice");
  if (asks("suffix") || flag_of(body, "echo"))
    throw ApiError("suffix and echo are not supported", "suffix");
}

void check_stops(const ordered_json& body, std::span<const std::string> stops) {
  const auto& stop = member_of(body, "stop");
  if (stop.is_null())
    return;
  const auto texts = stop.is_array() ? stop : ordered_json::array({stop});
  for (const auto& text : texts)
    if (!text.is_string()
        || std::ranges::find(stops, text.get<std::string>()) == stops.end())
      throw ApiError("stop is among the texts of rollout.stop, which end every "
                     "answer of the run",
                     "stop");
}

ApiForm form_of(const ordered_json& body) {
  ApiForm form;
  form.n = std::max(1U, count_of(body, "n", most_answers));
  form.streams = flag_of(body, "stream");
  form.token_ids = flag_of(body, "return_token_ids");
  const auto& logprobs = member_of(body, "logprobs"); // chat: bool, else int
  form.logprobs
    = logprobs.is_boolean() ? logprobs.get<bool>() : !logprobs.is_null();
  const auto& options = member_of(body, "stream_options");
  if (options.is_object())
    form.usage_event = flag_of(options, "include_usage");
  return form;
}

void read_chat(const ordered_json& body, ApiRequest& request) {
  const auto& ids = member_of(body, "prompt_token_ids");
  if (!ids.is_null())
    request.prompt_ids = ids_in(ids, "prompt_token_ids");
  if (ids.is_null() || !member_of(body, "messages").is_null())
    request.messages = normal_messages(member_of(body, "messages"));
  const auto& tools = member_of(body, "tools");
  if (!tools.is_null() && !tools.is_array())
    throw ApiError("tools is a list", "tools");
  if (!tools.empty() && member_of(body, "tool_choice") != "none")
    request.tools = tools;
}

void read_completion(const ordered_json& body, ApiRequest& request) {
  const auto* prompt = &member_of(body, "prompt");
  const bool wraps_one
    = prompt->is_array() && prompt->size() == 1 && !prompt->front().is_number();
  if (wraps_one)
    prompt = &prompt->front();
  const auto& ids = member_of(body, "prompt_token_ids");
  if (!ids.is_null())
    request.prompt_ids = ids_in(ids, "prompt_token_ids");
  else if (prompt->is_string())
    request.prompt = prompt->get<std::string>();
  else if (prompt->is_array())
    request.prompt_ids = ids_in(*prompt, "prompt");
  else
    throw ApiError("prompt is a text or a list of token ids", "prompt");
}

} // namespace

ApiRequest parse_api_request(ApiKind kind, std::string_view text,
                             std::span<const std::string> stops) {
  const auto body = parse_object(text);
  refuse_impossible(body);
  check_stops(body, stops);
  ApiRequest request{.kind = kind};
  if (const auto& model = member_of(body, "model"); model.is_string())
    request.model = model.get<std::string>();
  constexpr std::uint32_t most = std::numeric_limits<std::int32_t>::max();
  request.max_tokens = count_of(body, "max_completion_tokens", most);
  if (request.max_tokens == 0)
    request.max_tokens = count_of(body, "max_tokens", most);
  request.form = form_of(body);
  if (kind == ApiKind::chat)
    read_chat(body, request);
  else
    read_completion(body, request);
  return request;
}

double parse_reward(std::string_view text) {
  const auto body = parse_object(text);
  const auto& reward = member_of(body, "reward");
  if (!reward.is_number() || !std::isfinite(reward.get<double>()))
    throw ApiError("reward is a number", "reward");
  return reward.get<double>();
}

} // namespace troupe::models
