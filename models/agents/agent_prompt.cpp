#include "models/agents/agent_prompt.hpp"

#include "config/base/error.hpp"
#include "models/agents/api_error.hpp"

#include <nlohmann/json.hpp>

#include <utility>

namespace troupe::models {

namespace {

using nlohmann::ordered_json;

/// Text in place of an answer, which no template changes and nobody writes.
constexpr const char* answer_mark = "troupe2b9fanswer7c51mark";

std::string rendered_prompt(const ChatTemplate& chat,
                            const ordered_json& messages,
                            const ordered_json& tools) {
  try {
    return chat.render(messages, tools, /*add_generation_prompt=*/true);
  } catch (const ConfigError& error) {
    throw ApiError(error.what(), "messages");
  }
}

/// Returns the text that the template writes after the answer at `index`;
/// nothing if it cannot be told from the answer.
std::optional<std::string> text_after(const ChatTemplate& chat,
                                      ordered_json messages,
                                      const ordered_json& tools,
                                      std::size_t index) {
  messages[index] = {{"role", "assistant"}, {"content", answer_mark}};
  std::string text;
  try {
    text = chat.render(messages, tools, /*add_generation_prompt=*/true);
  } catch (const ConfigError&) { // as templates that want a call before a tool
    return std::nullopt;
  }
  const auto at = text.find(answer_mark);
  if (at == text.npos || text.find(answer_mark, at + 1) != text.npos)
    return std::nullopt;
  return text.substr(at + std::string_view(answer_mark).size());
}

/// Removes the end token that the answer has already.
void remove_end(std::string& text, const SessionRecord& record,
                SessionRecord::SegmentId answer, const Tokenizer& tokenizer) {
  const auto ids = record.ids_until(answer);
  if (record.truncated(answer) || ids.empty()
      || !tokenizer.ends_response(ids.back()))
    return;
  const auto* end = tokenizer.token_of(ids.back());
  if (end != nullptr && text.starts_with(*end))
    text.erase(0, end->size());
}

AgentPrompt prompt_of_ids(const ApiRequest& request,
                          const SessionRecord& record) {
  const std::span<const std::int32_t> ids(request.prompt_ids);
  const auto after = record.continued_by(ids);
  const auto known = after ? record.ids_until(*after).size() : 0;
  const auto rest = ids.subspan(known);
  return {after, {rest.begin(), rest.end()}};
}

AgentPrompt prompt_of_messages(const ApiRequest& request,
                               const SessionRecord& record,
                               const Tokenizer& tokenizer,
                               const ChatTemplate* chat) {
  if (chat == nullptr)
    throw ApiError("the model's tokenizer has no chat template; use "
                   "/v1/completions, or prompt_token_ids",
                   "messages");
  const auto& messages = *request.messages;
  const auto& tools = *request.tools;
  if (const auto after = record.continued_by(messages, tools)) {
    const auto index = record.said_as(*after).messages->size() - 1;
    if (auto text = text_after(*chat, messages, tools, index)) {
      remove_end(*text, record, *after, tokenizer);
      return {after, tokenizer.encode(*text, /*special=*/false)};
    }
  }
  return {{},
          tokenizer.encode(rendered_prompt(*chat, messages, tools),
                           /*special=*/false)};
}

/// Returns a text with the tokenizer's initial tokens, as rows of the data set
/// are; an end token that it adds would end the text at once.
std::vector<std::int32_t> first_ids(const std::string& text,
                                    const Tokenizer& tokenizer) {
  auto ids = tokenizer.encode(text);
  const auto own = tokenizer.encode(text, /*special=*/false);
  const bool adds_end = ids.size() > own.size()
                        && ids.back() == tokenizer.eos_id()
                        && (own.empty() || own.back() != ids.back());
  if (adds_end)
    ids.pop_back();
  return ids;
}

AgentPrompt prompt_of_text(const ApiRequest& request,
                           const SessionRecord& record,
                           const Tokenizer& tokenizer) {
  const auto after = record.continued_by(request.prompt);
  if (!after)
    return {{}, first_ids(request.prompt, tokenizer)};
  const auto rest = request.prompt.substr(record.said_as(*after).text.size());
  return {after, tokenizer.encode(rest, /*special=*/false)};
}

} // namespace

AgentPrompt agent_prompt(const ApiRequest& request, const SessionRecord& record,
                         const Tokenizer& tokenizer, const ChatTemplate* chat) {
  auto prompt = !request.prompt_ids.empty() ? prompt_of_ids(request, record)
                : request.kind == ApiKind::chat
                  ? prompt_of_messages(request, record, tokenizer, chat)
                  : prompt_of_text(request, record, tokenizer);
  if (prompt.given.empty() && !prompt.after)
    throw ApiError("the prompt has no tokens");
  for (const auto id : prompt.given)
    if (id >= tokenizer.num_ids())
      throw ApiError("token id " + std::to_string(id) + " is not one of the "
                       + std::to_string(tokenizer.num_ids())
                       + " that the model knows",
                     "prompt_token_ids");
  return prompt;
}

SaidAs said_as(const ApiRequest& request, const ordered_json& message,
               const std::string& text) {
  if (request.kind == ApiKind::completion)
    return {.messages = {},
            .tools = {},
            .text = request.prompt.empty() ? "" : request.prompt + text};
  if (request.messages->is_null()) // tokens were given
    return {};
  auto messages = *request.messages;
  messages.push_back(message);
  return {.messages = std::move(messages), .tools = request.tools, .text = ""};
}

} // namespace troupe::models
