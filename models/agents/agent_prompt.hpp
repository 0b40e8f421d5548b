// The tokens that a request gives to the model: those after an answer that it
// continues, or all of them. The tokens of earlier answers are taken from the
// record; only what lies between is tokenized.
#pragma once

#include "models/agents/api_request.hpp"
#include "models/agents/session_record.hpp"
#include "models/text/chat_template.hpp"
#include "models/text/tokenizer.hpp"

#include <optional>
#include <vector>

namespace troupe::models {

struct AgentPrompt {
  std::optional<SessionRecord::SegmentId> after; ///< the answer it continues
  std::vector<std::int32_t> given;               ///< new tokens, loss_mask 0
};

/// Returns the prompt of a request; `chat` is null if the model has no chat
/// template, which requests with messages need. Throws ApiError.
AgentPrompt agent_prompt(const ApiRequest& request, const SessionRecord& record,
                         const Tokenizer& tokenizer, const ChatTemplate* chat);

/// Returns what a program knows of an answer to the request.
SaidAs said_as(const ApiRequest& request, const nlohmann::ordered_json& message,
               const std::string& text);

} // namespace troupe::models
