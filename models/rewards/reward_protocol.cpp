#include "models/rewards/reward_protocol.hpp"

#include "config/base/json_levels.hpp"

#include <nlohmann/json.hpp>

#include <cmath>

namespace troupe::models {

namespace {

using RewardJson = nlohmann::ordered_json;

constexpr std::size_t most_shown_bytes = 200;

std::string shown(std::string_view text) {
  if (text.size() <= most_shown_bytes)
    return std::string(text);
  return std::string(text.substr(0, most_shown_bytes)) + "..";
}

RewardJson parse_lenient(std::string_view text) {
  if (nests_too_deep(text))
    return RewardJson(RewardJson::value_t::discarded);
  return RewardJson::parse(text, nullptr, /*allow_exceptions=*/false);
}

/// Returns `text` with quotes around NaN and Infinity, which are invalid JSON
/// but which many programs write: the answer then has an id and a mistake.
std::string quote_no_numbers(std::string_view text) {
  std::string quoted;
  bool in_string = false;
  while (!text.empty()) {
    std::size_t length = 1;
    for (const std::string_view word : {"NaN", "-Infinity", "Infinity"})
      if (!in_string && text.starts_with(word))
        length = word.size();
    if (length > 1)
      quoted.append("\"").append(text.substr(0, length)).append("\"");
    else {
      in_string = in_string != (text.front() == '"');
      length = in_string && text.front() == '\\' && text.size() > 1 ? 2 : 1;
      quoted.append(text.substr(0, length));
    }
    text.remove_prefix(length);
  }
  return quoted;
}

RewardJson parse_reply(std::string_view text) {
  auto reply = parse_lenient(text);
  return reply.is_discarded() ? parse_lenient(quote_no_numbers(text)) : reply;
}

} // namespace

std::string request_content(const RewardItem& item) {
  RewardJson content = {{"prompt", item.prompt},
                        {"response", item.response},
                        {"ground_truth", item.ground_truth},
                        {"data_source", item.data_source}};
  auto info = parse_lenient(item.extra_info);
  content["extra_info"] = info.is_discarded() ? RewardJson(nullptr) : info;
  return content.dump(-1, ' ', false, RewardJson::error_handler_t::replace);
}

std::string request_line(const std::string& content, std::uint64_t id) {
  return "{\"id\":" + std::to_string(id) + "," + content.substr(1);
}

std::optional<std::uint64_t> reply_id(std::string_view reply) {
  const auto document = parse_reply(reply);
  if (!document.is_object())
    return std::nullopt;
  const auto id = document.find("id");
  if (id == document.end() || !id->is_number_integer())
    return std::nullopt;
  return id->get<std::uint64_t>();
}

RewardScore read_reply(std::string_view reply) {
  RewardScore score;
  const auto document = parse_reply(reply);
  const auto refuse = [&](const std::string& why) {
    return RewardScore{.parts = {}, .error = why, .late = false};
  };
  if (!document.is_object())
    return refuse("expected a JSON object, got '" + shown(reply) + "'");
  const auto error = document.find("error");
  if (error != document.end() && !error->is_null())
    return refuse(error->is_string() ? error->get<std::string>()
                                     : error->dump());
  const auto add = [&](const std::string& name, const RewardJson& value) {
    const bool number = value.is_number() || value.is_boolean();
    const double read = value.is_boolean() ? (value.get<bool>() ? 1.0 : 0.0)
                        : number           ? value.get<double>()
                                           : 0.0;
    // scores are fp32 from here on
    if (!number || !std::isfinite(static_cast<float>(read)))
      score.error
        = "expected " + name + " to be a number, got " + shown(value.dump());
    score.parts.emplace_back(name, read);
  };
  const auto value = document.find("score");
  if (value == document.end())
    return refuse("expected a score, got '" + shown(reply) + "'");
  add("score", *value);
  const auto extra = document.find("extra");
  if (extra != document.end() && extra->is_object())
    for (const auto& [name, part] : extra->items())
      if (name != "score")
        add(name, part);
  return score;
}

} // namespace troupe::models
