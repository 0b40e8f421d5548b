#include "models/agents/api_reply.hpp"

#include "models/agents/api_error.hpp"
#include "models/agents/tool_calls.hpp"

#include <nlohmann/json.hpp>

#include <utility>

namespace troupe::models {

namespace {

using nlohmann::ordered_json;

bool is_chat_request(const ApiRequest& request) {
  return request.kind == ApiKind::chat;
}

std::string answer_number(const ApiReply& reply, std::size_t i) {
  return reply.id + "-" + std::to_string(i);
}

const char* finish_of(const ordered_json& message, const ApiAnswer& answer) {
  if (answer.truncated)
    return "length";
  return message.contains("tool_calls") ? "tool_calls" : "stop";
}

/// Returns the calls as clients expect them: arguments as a text of JSON.
ordered_json client_calls(const ordered_json& calls) {
  ordered_json all = ordered_json::array();
  for (const auto& call : calls) {
    ordered_json one = call;
    one["function"]["arguments"] = call["function"]["arguments"].dump();
    all.push_back(std::move(one));
  }
  return all;
}

ordered_json client_message(const ordered_json& message) {
  ordered_json shown = message;
  if (message.contains("tool_calls")) {
    shown["tool_calls"] = client_calls(message["tool_calls"]);
    if (message["content"] == "")
      shown["content"] = nullptr;
  }
  return shown;
}

std::string text_of_token(std::int32_t id, const Tokenizer& tokenizer) {
  return tokenizer.decode({&id, 1}, /*skip_special=*/false);
}

/// Returns {content: [...]} of tokens [begin, end), as chats have it.
ordered_json chat_logprobs(const ApiAnswer& answer, std::size_t begin,
                           std::size_t end, const Tokenizer& tokenizer) {
  ordered_json content = ordered_json::array();
  for (std::size_t t = begin; t < end; ++t)
    content.push_back({{"token", text_of_token(answer.ids[t], tokenizer)},
                       {"logprob", answer.logprobs[t]},
                       {"bytes", nullptr},
                       {"top_logprobs", ordered_json::array()}});
  return {{"content", std::move(content)}};
}

ordered_json text_logprobs(const ApiAnswer& answer, std::size_t begin,
                           std::size_t end, const Tokenizer& tokenizer) {
  ordered_json all = {{"tokens", ordered_json::array()},
                      {"token_logprobs", ordered_json::array()},
                      {"top_logprobs", nullptr}};
  for (std::size_t t = begin; t < end; ++t) {
    all["tokens"].push_back(text_of_token(answer.ids[t], tokenizer));
    all["token_logprobs"].push_back(answer.logprobs[t]);
  }
  return all;
}

ordered_json logprobs_of(const ApiRequest& request, const ApiAnswer& answer,
                         std::size_t begin, std::size_t end,
                         const Tokenizer& tokenizer) {
  if (!request.form.logprobs)
    return nullptr;
  return is_chat_request(request)
           ? chat_logprobs(answer, begin, end, tokenizer)
           : text_logprobs(answer, begin, end, tokenizer);
}

ordered_json usage_of(const ApiReply& reply) {
  std::size_t said = 0;
  for (const auto& answer : reply.answers)
    said += answer.ids.size();
  return {{"prompt_tokens", reply.prompt_ids.size()},
          {"completion_tokens", said},
          {"total_tokens", reply.prompt_ids.size() + said}};
}

/// Returns the members that every body and event begins with.
ordered_json heading(const ApiRequest& request, const ApiReply& reply) {
  const std::string object = !is_chat_request(request) ? "text_completion"
                             : request.form.streams    ? "chat.completion.chunk"
                                                       : "chat.completion";
  return {{"id", reply.id},
          {"object", object},
          {"created", reply.created_s},
          {"model", reply.model}};
}

/// The events of one reply.
class EventWriter {
public:
  EventWriter(const ApiRequest& request, const ApiReply& reply,
              const Tokenizer& tokenizer)
    : request_(request),
      reply_(reply),
      tokenizer_(tokenizer) {}

  std::string write() {
    for (std::size_t i = 0; i < reply_.answers.size(); ++i)
      write_answer(i);
    if (request_.form.usage_event)
      event(ordered_json::array(), usage_of(reply_));
    return std::move(text_) + "data: [DONE]\n\n";
  }

private:
  void event(ordered_json choices, ordered_json usage) {
    auto body = heading(request_, reply_);
    body["choices"] = std::move(choices);
    if (!usage.is_null())
      body["usage"] = std::move(usage);
    if (request_.form.token_ids && !said_prompt_) {
      body["prompt_token_ids"] = reply_.prompt_ids;
      said_prompt_ = true;
    }
    text_ += "data: " + body.dump() + "\n\n";
  }

  /// Writes a part of answer i: its tokens [begin, end) with what they say.
  void part(std::size_t i, ordered_json said, std::size_t begin,
            std::size_t end, const char* finish) {
    const auto& answer = reply_.answers[i];
    ordered_json choice = {{"index", i}};
    choice.update(said);
    choice["logprobs"]
      = begin == end ? ordered_json()
                     : logprobs_of(request_, answer, begin, end, tokenizer_);
    choice["finish_reason"]
      = finish == nullptr ? ordered_json() : ordered_json(finish);
    if (request_.form.token_ids)
      choice["token_ids"]
        = std::vector(answer.ids.begin() + static_cast<std::ptrdiff_t>(begin),
                      answer.ids.begin() + static_cast<std::ptrdiff_t>(end));
    event(ordered_json::array({std::move(choice)}), nullptr);
  }

  ordered_json said(const std::string& text) const {
    return is_chat_request(request_)
             ? ordered_json{{"delta", {{"content", text}}}}
             : ordered_json{{"text", text}};
  }

  void write_tokens(std::size_t i, const char* finish) {
    const auto& ids = reply_.answers[i].ids;
    TextStream stream(tokenizer_);
    for (std::size_t t = 0; t < ids.size(); ++t)
      part(i, said(stream.push(ids[t])), t, t + 1, nullptr);
    part(i, said(stream.finish()), ids.size(), ids.size(), finish);
  }

  /// A call is known to be one when it is whole, so it comes as one event.
  void write_calls(std::size_t i, const ordered_json& message,
                   const char* finish) {
    const auto& ids = reply_.answers[i].ids;
    auto calls = client_calls(message["tool_calls"]);
    for (std::size_t c = 0; c < calls.size(); ++c)
      calls[c]["index"] = c;
    part(
      i,
      {{"delta",
        {{"content", message["content"]}, {"tool_calls", std::move(calls)}}}},
      0, ids.size(), nullptr);
    part(i, {{"delta", ordered_json::object()}}, ids.size(), ids.size(),
         finish);
  }

  void write_answer(std::size_t i) {
    const auto& answer = reply_.answers[i];
    const auto message
      = said_message(request_, answer, tokenizer_, answer_number(reply_, i));
    const auto* finish = finish_of(message, answer);
    if (is_chat_request(request_))
      part(i, {{"delta", {{"role", "assistant"}, {"content", ""}}}}, 0, 0,
           nullptr);
    if (message.contains("tool_calls"))
      write_calls(i, message, finish);
    else
      write_tokens(i, finish);
  }

  const ApiRequest& request_;
  const ApiReply& reply_;
  const Tokenizer& tokenizer_;
  std::string text_;
  bool said_prompt_ = false;
};

} // namespace

ordered_json said_message(const ApiRequest& request, const ApiAnswer& answer,
                          const Tokenizer& tokenizer,
                          const std::string& number) {
  const auto text = tokenizer.decode(answer.ids);
  const auto said
    = request.tools->is_null() ? SaidText{text, {}} : split_tool_calls(text);
  ordered_json message = {{"role", "assistant"}, {"content", said.content}};
  for (std::size_t i = 0; i < said.calls.size(); ++i)
    message["tool_calls"].push_back(
      {{"id", "call_" + number + "-" + std::to_string(i)},
       {"type", "function"},
       {"function",
        {{"name", said.calls[i].name},
         {"arguments", *said.calls[i].arguments}}}});
  return message;
}

std::string reply_body(const ApiRequest& request, const ApiReply& reply,
                       const Tokenizer& tokenizer) {
  auto body = heading(request, reply);
  body["choices"] = ordered_json::array();
  for (std::size_t i = 0; i < reply.answers.size(); ++i) {
    const auto& answer = reply.answers[i];
    const auto message
      = said_message(request, answer, tokenizer, answer_number(reply, i));
    ordered_json choice = {{"index", i}};
    if (is_chat_request(request))
      choice["message"] = client_message(message);
    else
      choice["text"] = message["content"];
    choice["logprobs"]
      = logprobs_of(request, answer, 0, answer.ids.size(), tokenizer);
    choice["finish_reason"] = finish_of(message, answer);
    if (request.form.token_ids)
      choice["token_ids"] = answer.ids;
    body["choices"].push_back(std::move(choice));
  }
  body["usage"] = usage_of(reply);
  if (request.form.token_ids)
    body["prompt_token_ids"] = reply.prompt_ids;
  return body.dump();
}

std::string reply_events(const ApiRequest& request, const ApiReply& reply,
                         const Tokenizer& tokenizer) {
  return EventWriter(request, reply, tokenizer).write();
}

std::string error_body(const ApiError& error) {
  ordered_json body = {{"message", error.what()},
                       {"type", "invalid_request_error"},
                       {"param", nullptr},
                       {"code", error.status}};
  if (!error.param.empty())
    body["param"] = error.param;
  if (!error.code.empty())
    body["code"] = error.code;
  return ordered_json{{"error", std::move(body)}}.dump();
}

std::string models_body(std::span<const std::string> models) {
  auto list = ordered_json::array();
  for (const auto& model : models)
    list.push_back(
      {{"id", model}, {"object", "model"}, {"owned_by", "troupe"}});
  return ordered_json{{"object", "list"}, {"data", std::move(list)}}.dump();
}

ApiError no_such_model(const std::string& model,
                       std::span<const std::string> models) {
  constexpr unsigned not_found = 404;
  std::string known;
  for (const auto& one : models)
    known += (known.empty() ? "" : ", ") + one;
  ApiError error("The model `" + model + "` does not exist; there are " + known,
                 "model", not_found);
  error.code = "model_not_found";
  return error;
}

} // namespace troupe::models
