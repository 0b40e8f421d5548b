#include "models/agents/session_report.hpp"

#include "models/agents/api_error.hpp"
#include "models/agents/shallow_json.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>

namespace troupe::models {

namespace {

using nlohmann::ordered_json;

std::optional<double> reward_in(const ordered_json& body) {
  const auto found = body.find("reward");
  if (found == body.end() || found->is_null())
    return std::nullopt;
  if (!found->is_number() || !std::isfinite(found->get<double>()))
    throw ApiError("reward is a number", "reward");
  return found->get<double>();
}

} // namespace

std::string taken_session_body(const TakenSession& session,
                               const std::string& base_url) {
  // the row stays as its file has it: numbers keep their digits
  return fmt::format(
    R"({{"key": {}, "sample": {}, "base_url": {}, "timeout_s": {}, )"
    R"("row": {}}})",
    ordered_json(session.key).dump(), session.sample,
    ordered_json(base_url).dump(), session.timeout_s, session.row);
}

SessionReport parse_session_report(std::string_view body) {
  if (body.empty())
    return {};
  const auto value = parse_shallow_json(body);
  if (!value.is_object())
    throw ApiError("the body is a JSON object, or nothing");
  SessionReport report{.reward = reward_in(value)};
  if (const auto failed = value.find("failed");
      failed != value.end() && !failed->is_null()) {
    if (!failed->is_boolean())
      throw ApiError("failed is true or false", "failed");
    report.failed = failed->get<bool>();
  }
  return report;
}

SessionEnd session_end(const SessionReport& report,
                       std::optional<double> posted, bool needs_reward) {
  SessionEnd end{.reward = report.reward ? report.reward : posted};
  if (report.failed)
    end.failure = "its program said that it failed";
  else if (needs_reward && !end.reward)
    end.failure = "its program ended it without a reward, and posted none";
  return end;
}

SessionEnd late_session_end(double timeout_s) {
  return {.reward = {},
          .failure
          = fmt::format("its program took it and did not end it within {} s "
                        "(agents.timeout_s)",
                        timeout_s)};
}

} // namespace troupe::models
