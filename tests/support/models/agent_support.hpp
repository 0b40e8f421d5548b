// A tokenizer whose tokens are characters, with a chat template like those of
// models that call tools, and answers of a model that tests make up.
#pragma once

#include "models/agents/agent_prompt.hpp"
#include "models/agents/api_reply.hpp"
#include "models/text/chat_template.hpp"
#include "models/text/tokenizer.hpp"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace troupe::testing {

inline constexpr const char* turn_template
  = "{% if tools %}tools {{ tools | tojson }}\n{% endif %}"
    "{% for m in messages %}<|say|>{{ m.role }}\n{{ m.content }}"
    "{% if m.tool_calls %} calls {{ m.tool_calls | length }}{% endif %}"
    "<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|say|>assistant\n{% endif %}";

/// Returns a tokenizer with one token per character of ASCII, and the special
/// tokens <|end|> (200), which ends a turn, and <|say|> (201).
inline models::Tokenizer characters(const char* chat_template = turn_template) {
  nlohmann::json vocab = {{"Ġ", 32}, {"Ċ", 10}};
  for (char c = '!'; c <= '~'; ++c)
    vocab[std::string(1, c)] = static_cast<int>(c);
  const auto special = [](const char* text, int id) {
    return nlohmann::json{
      {"id", id}, {"content", text}, {"special", true}, {"normalized", false}};
  };
  const nlohmann::json document = {
    {"added_tokens", {special("<|end|>", 200), special("<|say|>", 201)}},
    {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}}},
    {"decoder", {{"type", "ByteLevel"}}},
    {"model",
     {{"type", "BPE"}, {"vocab", vocab}, {"merges", nlohmann::json::array()}}}};
  nlohmann::json config = {{"eos_token", "<|end|>"}};
  if (chat_template != nullptr)
    config["chat_template"] = chat_template;
  return models::Tokenizer::parse(document.dump(), config.dump(), "characters");
}

/// Returns what the model says with these characters; a whole answer ends with
/// its end token.
inline models::ApiAnswer answer_of(const models::Tokenizer& tokenizer,
                                   const std::string& text,
                                   bool truncated = false) {
  models::ApiAnswer answer;
  answer.ids = tokenizer.encode(text + (truncated ? "" : "<|end|>"),
                                /*special=*/false);
  for (std::size_t t = 0; t < answer.ids.size(); ++t)
    answer.logprobs.push_back(-0.5F * static_cast<float>(t + 1));
  answer.truncated = truncated;
  return answer;
}

/// A session whose model says what the test tells it to.
class ToldSession {
public:
  explicit ToldSession(models::Tokenizer tokenizer = characters())
    : tokenizer_(std::move(tokenizer)),
      chat_(tokenizer_) {}

  /// Asks by a body; returns the assistant's message.
  nlohmann::ordered_json ask(models::ApiKind kind, const std::string& body,
                             const std::string& answer,
                             bool truncated = false) {
    const auto request = models::parse_api_request(kind, body, {});
    last_prompt = models::agent_prompt(request, record, tokenizer_, &chat_);
    const auto given = record.give(last_prompt.after, last_prompt.given);
    const auto said = answer_of(tokenizer_, answer, truncated);
    auto message = models::said_message(request, said, tokenizer_, "0");
    record.say(given, said.ids, said.logprobs, truncated,
               models::said_as(request, message, answer));
    return message;
  }
  nlohmann::ordered_json chat(const nlohmann::ordered_json& messages,
                              const std::string& answer,
                              bool truncated = false) {
    return ask(models::ApiKind::chat,
               nlohmann::ordered_json{{"messages", messages}}.dump(), answer,
               truncated);
  }
  /// Returns the text of the tokens of the branch of the last answer.
  std::string spelled() const {
    return tokenizer_.decode(record.last_branch()->ids, false);
  }
  /// Returns the text of those that the model said.
  std::string said() const {
    const auto branch = *record.last_branch();
    std::vector<std::int32_t> ids;
    for (std::size_t t = 0; t < branch.ids.size(); ++t)
      if (branch.loss_mask[t] == 1)
        ids.push_back(branch.ids[t]);
    return tokenizer_.decode(ids, false);
  }

  models::SessionRecord record;
  models::AgentPrompt last_prompt;

private:
  models::Tokenizer tokenizer_;
  models::ChatTemplate chat_;
};

inline nlohmann::ordered_json user_says(const std::string& text) {
  return {{"role", "user"}, {"content", text}};
}

} // namespace troupe::testing
