// JSON that all servers that generate share: the report of an answer that is
// not what its route gives, versions of tokens, and sampling filters.
#pragma once

#include "models/generate/generate_options.hpp"
#include "models/servers/server_request.hpp"

#include <nlohmann/json_fwd.hpp>

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::models {

/// Throws FailureError: `server` ("vLLM") answered something else.
[[noreturn]] void answer_misread(const std::string& server,
                                 const std::string& what);

/// Parses a text of `server` for `read`; exceptions of the JSON become
/// FailureErrors.
void visit_answer(const std::string& server, std::string_view body,
                  const std::function<void(const nlohmann::json&)>& read);

/// Returns what `read` makes of the text.
template <class Read>
auto read_answer_json(const std::string& server, std::string_view body,
                      Read read) {
  decltype(read(std::declval<const nlohmann::json&>())) result;
  visit_answer(server, body,
               [&](const nlohmann::json& answer) { result = read(answer); });
  return result;
}

/// Reads a list of `{version, start, end}`, in tokens of the response.
std::vector<ServerVersionSpan> spans_of(const nlohmann::json& list);

/// Returns the seed as servers take it: without a sign.
std::int64_t server_seed(const ServerRequest& request);

/// Returns whether a response ended by an end token (`reason` "stop"), not by
/// its limit ("length"). Throws FailureError for any other end.
bool stopped_by(const std::string& server, const std::string& reason);

/// Adds `temperature` and the filters that are on, under the names that vLLM
/// and SGLang share; none of them where the options are greedy.
void add_filters(nlohmann::json& params, const GenerateOptions& options);

} // namespace troupe::models
