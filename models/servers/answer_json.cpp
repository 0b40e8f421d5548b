#include "models/servers/answer_json.hpp"

#include "config/base/error.hpp"

#include <nlohmann/json.hpp>

namespace troupe::models {

void answer_misread(const std::string& server, const std::string& what) {
  throw FailureError({.code = Errc::bad_input,
                      .who = server,
                      .what = "its answer is not what the route gives: " + what,
                      .cause = ""});
}

void visit_answer(const std::string& server, std::string_view body,
                  const std::function<void(const nlohmann::json&)>& read) {
  try {
    read(nlohmann::json::parse(body));
  } catch (const nlohmann::json::exception& error) {
    answer_misread(server, error.what());
  }
}

std::vector<ServerVersionSpan> spans_of(const nlohmann::json& list) {
  std::vector<ServerVersionSpan> spans;
  for (const auto& span : list)
    spans.push_back({span.at("version").get<std::string>(),
                     span.at("start").get<std::size_t>(),
                     span.at("end").get<std::size_t>()});
  return spans;
}

std::int64_t server_seed(const ServerRequest& request) {
  return static_cast<std::int64_t>(request.seed & 0x7FFF'FFFF'FFFF'FFFF);
}

bool stopped_by(const std::string& server, const std::string& reason) {
  if (reason != "stop" && reason != "length")
    answer_misread(server, "it ended with '" + reason + "'");
  return reason == "stop";
}

void add_filters(nlohmann::json& params, const GenerateOptions& options) {
  params["temperature"] = options.greedy ? 0.0 : options.temperature;
  if (options.greedy)
    return;
  if (options.top_k > 0)
    params["top_k"] = options.top_k;
  if (options.top_p < 1)
    params["top_p"] = options.top_p;
  if (options.min_p > 0)
    params["min_p"] = options.min_p;
}

} // namespace troupe::models
