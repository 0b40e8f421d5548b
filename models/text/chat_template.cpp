#include "models/text/chat_template.hpp"

#include "config/base/error.hpp"
#include "models/text/jinja/builtins.hpp"
#include "models/text/jinja/evaluator.hpp"
#include "models/text/jinja/syntax.hpp"
#include "models/text/tokenizer.hpp"

#include <nlohmann/json.hpp>

#include <ctime>

namespace troupe::models {

using nlohmann::ordered_json;

namespace {

/// Returns messages whose thoughts have the names that templates look for,
/// whichever of them they came with: transformers' rule.
ordered_json with_reasoning(const ordered_json& messages) {
  ordered_json out = messages;
  if (!out.is_array())
    return out;
  for (ordered_json& message : out) {
    if (!message.is_object())
      continue;
    for (const char* name : {"reasoning_content", "thinking", "reasoning"}) {
      const auto found = message.find(name);
      if (found == message.end() || found->is_null())
        continue;
      ordered_json reasoning = *found;
      ordered_json renamed = {{"thinking", reasoning}};
      renamed.update(message);
      renamed["reasoning_content"] = std::move(reasoning);
      message = std::move(renamed);
      break;
    }
  }
  return out;
}

} // namespace

struct ChatTemplate::State {
  std::string file;
  std::vector<std::pair<std::string, std::string>> special;
  jinja::Body body;

  [[noreturn]] void fail(const jinja::TemplateError& error) const {
    throw ConfigError(Place{file, 0}, "chat template, line "
                                        + std::to_string(error.line) + ": "
                                        + error.what());
  }

  jinja::Rendered run(const ordered_json& messages, const ordered_json& tools,
                      bool prompt) const {
    jinja::Named variables
      = jinja::global_functions(static_cast<std::int64_t>(std::time(nullptr)));
    for (const auto& [name, token] : special)
      variables.emplace_back(name, token);
    variables.emplace_back("add_generation_prompt", prompt);
    variables.emplace_back("documents", jinja::None{});
    try {
      variables.emplace_back("tools", tools.is_null()
                                        ? jinja::Value(jinja::None{})
                                        : jinja::Value::from_json(tools));
      variables.emplace_back("messages",
                             jinja::Value::from_json(with_reasoning(messages)));
      return jinja::render(body, std::move(variables));
    } catch (const jinja::TemplateError& error) {
      fail(error);
    }
  }
};

namespace {

const std::string& template_of(const Tokenizer& tokenizer) {
  tokenizer.need_vocabulary();
  if (!tokenizer.chat_template())
    throw ConfigError({.place = {tokenizer.file(), 0},
                       .path = "chat_template",
                       .expected = "a template for messages",
                       .got = "none",
                       .hint = "one in tokenizer_config.json, or "
                               "chat_template.jinja beside it"});
  return *tokenizer.chat_template();
}

std::vector<std::pair<std::string, std::string>>
special_of(const Tokenizer& tokenizer) {
  std::vector<std::pair<std::string, std::string>> special;
  const auto add = [&](const char* name, std::int32_t id) {
    if (const std::string* token = tokenizer.token_of(id))
      special.emplace_back(name, *token);
  };
  add("bos_token", tokenizer.bos_id());
  add("eos_token", tokenizer.eos_id());
  add("pad_token", tokenizer.pad_id());
  add("unk_token", tokenizer.unk_id());
  return special;
}

bool by_assistant(const ordered_json& message) {
  return message.is_object() && message.value("role", "") == "assistant";
}

} // namespace

ChatTemplate::ChatTemplate(const Tokenizer& tokenizer)
  : ChatTemplate(template_of(tokenizer), special_of(tokenizer),
                 tokenizer.chat_template_file()) {}

ChatTemplate::ChatTemplate(
  const std::string& source,
  std::vector<std::pair<std::string, std::string>> special, std::string file) {
  auto state
    = std::make_shared<State>(State{std::move(file), std::move(special), {}});
  try {
    state->body = jinja::parse_template(source);
  } catch (const jinja::TemplateError& error) {
    state->fail(error);
  }
  state_ = std::move(state);
}

std::string ChatTemplate::render(const ordered_json& messages,
                                 bool add_generation_prompt) const {
  return render(messages, nullptr, add_generation_prompt);
}

std::string ChatTemplate::render(const ordered_json& messages,
                                 const ordered_json& tools,
                                 bool add_generation_prompt) const {
  return state_->run(messages, tools, add_generation_prompt).text;
}

ChatText ChatTemplate::render_turns(const ordered_json& messages) const {
  jinja::Rendered whole = state_->run(messages, nullptr, false);
  ChatText chat{std::move(whole.text), std::move(whole.generated), {}};
  if (!chat.assistant.empty())
    return chat;
  ordered_json before = ordered_json::array();
  std::size_t last_turn = 0;
  for (const ordered_json& message : messages) {
    if (!by_assistant(message)) {
      before.push_back(message);
      continue;
    }
    const std::string prompt = render(before, /*add_generation_prompt=*/true);
    last_turn = before.size();
    before.push_back(message);
    const bool last = before.size() == messages.size();
    const std::string with
      = last ? chat.text : render(before, /*add_generation_prompt=*/false);
    if (with.starts_with(prompt) && chat.text.starts_with(with))
      chat.assistant.emplace_back(prompt.size(), with.size());
    else
      chat.changed.push_back(last_turn);
  }
  if (!chat.changed.empty() && chat.changed.back() == last_turn)
    throw ConfigError(
      Place{state_->file, 0},
      "chat template: the text of assistant message "
        + std::to_string(last_turn)
        + " cannot be separated from the text before it; try a template "
          "with {% generation %} blocks");
  return chat;
}

const std::string& ChatTemplate::file() const {
  return state_->file;
}

} // namespace troupe::models
