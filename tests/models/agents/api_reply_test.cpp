// Replies of OpenAI's protocol, whole and as events.
#include "models/agents/api_error.hpp"
#include "models/agents/api_reply.hpp"

#include "tests/support/models/agent_support.hpp"
#include <gmock/gmock.h>

namespace troupe::models {
namespace {

using nlohmann::json;
using testing::answer_of;
using testing::characters;
using ::testing::EndsWith;
using ::testing::StartsWith;

constexpr const char* a_call
  = R"(ok <tool_call>{"name": "f", "arguments": {"x": 1}}</tool_call>)";

ApiRequest chat_request(const std::string& more = "") {
  return parse_api_request(
    ApiKind::chat,
    R"({"messages": [{"role": "user", "content": "hi"}])" + more + "}", {});
}

ApiReply reply_of(std::vector<ApiAnswer> answers) {
  return {.id = "r",
          .model = "actor",
          .created_s = 5,
          .prompt_ids = {7, 8, 9},
          .answers = std::move(answers)};
}

json body_of(const ApiRequest& request, std::vector<ApiAnswer> answers) {
  return json::parse(
    reply_body(request, reply_of(std::move(answers)), characters()));
}

/// Returns the values of the events before [DONE].
std::vector<json> events_of(const ApiRequest& request,
                            std::vector<ApiAnswer> answers) {
  const auto text
    = reply_events(request, reply_of(std::move(answers)), characters());
  EXPECT_THAT(text, EndsWith("data: [DONE]\n\n"));
  std::vector<json> events;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = text.find("\n\n", at);
    const auto line = text.substr(at, end - at);
    EXPECT_THAT(line, StartsWith("data: "));
    if (line != "data: [DONE]")
      events.push_back(json::parse(line.substr(6)));
    at = end + 2;
  }
  return events;
}

TEST(ApiReply, AChatHasMessagesAndCounts) {
  const auto body = body_of(chat_request(), {answer_of(characters(), "yes"),
                                             answer_of(characters(), "n",
                                                       /*truncated=*/true)});
  EXPECT_EQ(body["object"], "chat.completion");
  EXPECT_EQ(body["model"], "actor");
  EXPECT_EQ(body["choices"][0]["message"]["role"], "assistant");
  EXPECT_EQ(body["choices"][0]["message"]["content"], "yes");
  EXPECT_EQ(body["choices"][0]["finish_reason"], "stop");
  EXPECT_EQ(body["choices"][1]["index"], 1);
  EXPECT_EQ(body["choices"][1]["finish_reason"], "length");
  EXPECT_EQ(body["usage"]["prompt_tokens"], 3);
  EXPECT_EQ(body["usage"]["completion_tokens"], 5);
  EXPECT_TRUE(body["choices"][0]["logprobs"].is_null());
  EXPECT_FALSE(body.contains("prompt_token_ids"));
}

TEST(ApiReply, TokensAndLogprobsComeIfAskedFor) {
  const auto body
    = body_of(chat_request(R"(, "logprobs": true, "return_token_ids": true)"),
              {answer_of(characters(), "ab")});
  EXPECT_EQ(body["prompt_token_ids"], json({7, 8, 9}));
  EXPECT_EQ(body["choices"][0]["token_ids"], json({97, 98, 200}));
  const auto& content = body["choices"][0]["logprobs"]["content"];
  ASSERT_EQ(content.size(), 3U);
  EXPECT_EQ(content[1]["token"], "b");
  EXPECT_EQ(content[1]["logprob"], -1.0);
  EXPECT_EQ(content[2]["token"], "<|end|>");
}

TEST(ApiReply, CallsComeAsCallsWhereToolsWereGiven) {
  const auto with = body_of(chat_request(R"(, "tools": [{}])"),
                            {answer_of(characters(), a_call)});
  const auto& choice = with["choices"][0];
  EXPECT_EQ(choice["finish_reason"], "tool_calls");
  EXPECT_EQ(choice["message"]["content"], "ok");
  const auto& call = choice["message"]["tool_calls"][0];
  EXPECT_EQ(call["function"]["name"], "f");
  EXPECT_EQ(call["function"]["arguments"], R"({"x":1})");
  EXPECT_FALSE(call["id"].get<std::string>().empty());
  const auto without
    = body_of(chat_request(), {answer_of(characters(), a_call)});
  EXPECT_EQ(without["choices"][0]["message"]["content"], a_call);
}

TEST(ApiReply, ACompletionHasTexts) {
  const auto request = parse_api_request(
    ApiKind::completion, R"({"prompt": "x", "logprobs": 1})", {});
  const auto body = body_of(request, {answer_of(characters(), "ab")});
  EXPECT_EQ(body["object"], "text_completion");
  EXPECT_EQ(body["choices"][0]["text"], "ab");
  EXPECT_EQ(body["choices"][0]["logprobs"]["tokens"],
            json({"a", "b", "<|end|>"}));
  EXPECT_EQ(body["choices"][0]["logprobs"]["token_logprobs"],
            json({-0.5, -1.0, -1.5}));
}

TEST(ApiReply, EventsAddUpToTheAnswer) {
  const auto events
    = events_of(chat_request(R"(, "stream": true, "logprobs": true,
                    "return_token_ids": true,
                    "stream_options": {"include_usage": true})"),
                {answer_of(characters(), "abc")});
  std::string content;
  std::vector<int> ids;
  std::size_t logprobs = 0;
  for (const auto& event : events) {
    EXPECT_EQ(event["object"], "chat.completion.chunk");
    for (const auto& choice : event["choices"]) {
      content += choice["delta"].value("content", "");
      for (const auto& id : choice["token_ids"])
        ids.push_back(id);
      if (!choice["logprobs"].is_null())
        logprobs += choice["logprobs"]["content"].size();
    }
  }
  EXPECT_EQ(content, "abc");
  EXPECT_EQ(ids, (std::vector{97, 98, 99, 200}));
  EXPECT_EQ(logprobs, 4U);
  EXPECT_EQ(events.front()["choices"][0]["delta"]["role"], "assistant");
  EXPECT_EQ(events.front()["prompt_token_ids"], json({7, 8, 9}));
  EXPECT_EQ(events[events.size() - 2]["choices"][0]["finish_reason"], "stop");
  EXPECT_TRUE(events.back()["choices"].empty());
  EXPECT_EQ(events.back()["usage"]["completion_tokens"], 4);
}

TEST(ApiReply, CallsAreOneEvent) {
  const auto events
    = events_of(chat_request(R"(, "stream": true, "tools": [{}])"),
                {answer_of(characters(), a_call)});
  ASSERT_EQ(events.size(), 3U);
  const auto& delta = events[1]["choices"][0]["delta"];
  EXPECT_EQ(delta["content"], "ok");
  EXPECT_EQ(delta["tool_calls"][0]["index"], 0);
  EXPECT_EQ(delta["tool_calls"][0]["function"]["arguments"], R"({"x":1})");
  EXPECT_EQ(events[2]["choices"][0]["finish_reason"], "tool_calls");
}

TEST(ApiReply, ErrorsAreObjects) {
  const auto body
    = json::parse(error_body(ApiError("n is a number", "n", 400)));
  EXPECT_EQ(body["error"]["message"], "n is a number");
  EXPECT_EQ(body["error"]["param"], "n");
  EXPECT_EQ(body["error"]["code"], 400);
  EXPECT_EQ(json::parse(
              models_body(std::vector<std::string>{"actor"}))["data"][0]["id"],
            "actor");
}

} // namespace
} // namespace troupe::models
