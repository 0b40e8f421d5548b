// The answers to a request of OpenAI's protocol as JSON, whole or as a stream
// of events.
#pragma once

#include "models/agents/api_request.hpp"
#include "models/text/tokenizer.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace troupe::models {

struct ApiError;

/// One answer of the model.
struct ApiAnswer {
  std::vector<std::int32_t> ids;
  std::vector<float> logprobs; ///< one each
  bool truncated = false;      ///< cut by a limit, no end token
};

struct ApiReply {
  std::string id;
  std::string model;
  std::int64_t created_s = 0; ///< seconds since 1970
  std::vector<std::int32_t> prompt_ids;
  std::vector<ApiAnswer> answers;
};

/// Returns the assistant's message in the form of normal_messages: what the
/// program gets, and what a later request continues. `number` makes the ids of
/// its calls unique.
nlohmann::ordered_json said_message(const ApiRequest& request,
                                    const ApiAnswer& answer,
                                    const Tokenizer& tokenizer,
                                    const std::string& number);

/// Returns the body of a response.
std::string reply_body(const ApiRequest& request, const ApiReply& reply,
                       const Tokenizer& tokenizer);
/// Returns the same as server-sent events, a token each, up to [DONE].
std::string reply_events(const ApiRequest& request, const ApiReply& reply,
                         const Tokenizer& tokenizer);
std::string error_body(const ApiError& error);
std::string models_body(std::span<const std::string> models);
/// Returns what a request for a model that is not there gets.
ApiError no_such_model(const std::string& model,
                       std::span<const std::string> models);

} // namespace troupe::models
