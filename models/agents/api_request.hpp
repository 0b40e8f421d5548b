// A request of OpenAI's protocol as values: what a program asks the model, in
// messages, text or tokens, and how the answer is to look. Fields that change
// how tokens are drawn have no effect, since the run decides that; what cannot
// be done is refused.
#pragma once

#include "models/agents/held_json.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::models {

enum class ApiKind : std::uint8_t { chat, completion };

/// Form of the answer.
struct ApiForm {
  std::uint32_t n = 1;
  bool logprobs = false;
  bool streams = false;
  bool token_ids = false;   ///< prompt_token_ids and token_ids
  bool usage_event = false; ///< counts of tokens at the end of a stream
};

struct ApiRequest {
  ApiKind kind = ApiKind::chat;
  std::string model;
  /// Chat: in the form of normal_messages. Null if only tokens were given.
  HeldJson messages;
  HeldJson tools;                       ///< null: none
  std::string prompt;                   ///< completion
  std::vector<std::int32_t> prompt_ids; ///< if not empty, in place of texts
  std::uint32_t max_tokens = 0;         ///< 0: as many as there is room for
  ApiForm form;
};

/// Most answers to one request.
inline constexpr std::uint32_t most_answers = 128;

/// Parses a body; `stops` are the texts that end the run's responses. Throws
/// ApiError.
ApiRequest parse_api_request(ApiKind kind, std::string_view body,
                             std::span<const std::string> stops);

/// Returns the number in `{"reward": NUMBER}`. Throws ApiError.
double parse_reward(std::string_view body);

} // namespace troupe::models
