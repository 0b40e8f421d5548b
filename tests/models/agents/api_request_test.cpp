// Requests of OpenAI's protocol: what is read, what is refused.
#include "models/agents/api_error.hpp"
#include "models/agents/api_request.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace troupe::models {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::vector<std::string> stops = {"=", "\n\n"};

ApiRequest chat(const std::string& more) {
  return parse_api_request(
    ApiKind::chat,
    R"({"messages": [{"role": "user", "content": "hi"}])" + more + "}", stops);
}

ApiRequest completion(const std::string& body) {
  return parse_api_request(ApiKind::completion, body, stops);
}

template <class Parse>
std::string api_refusal(Parse parse) {
  try {
    parse();
  } catch (const ApiError& error) {
    EXPECT_EQ(error.status, 400U);
    return error.param + ": " + error.what();
  }
  return "accepted";
}

TEST(ApiRequest, AChatHasMessagesAndDefaults) {
  const auto request = chat("");
  EXPECT_EQ((*request.messages)[0]["content"], "hi");
  EXPECT_TRUE(request.tools->is_null());
  EXPECT_EQ(request.max_tokens, 0U);
  EXPECT_EQ(request.form.n, 1U);
  EXPECT_FALSE(request.form.logprobs);
  EXPECT_FALSE(request.form.streams);
}

TEST(ApiRequest, ReadsTheFormOfTheAnswer) {
  const auto request
    = chat(R"(, "model": "m", "n": 3, "max_tokens": 9, "logprobs": true,
              "stream": true, "stream_options": {"include_usage": true},
              "return_token_ids": true, "tools": [{"type": "function"}])");
  EXPECT_EQ(request.model, "m");
  EXPECT_EQ(request.form.n, 3U);
  EXPECT_EQ(request.max_tokens, 9U);
  EXPECT_TRUE(request.form.logprobs);
  EXPECT_TRUE(request.form.streams);
  EXPECT_TRUE(request.form.usage_event);
  EXPECT_TRUE(request.form.token_ids);
  EXPECT_EQ(request.tools->size(), 1U);
  EXPECT_EQ(chat(R"(, "max_completion_tokens": 4, "max_tokens": 9)").max_tokens,
            4U);
}

TEST(ApiRequest, ACompletionHasATextOrTokens) {
  EXPECT_EQ(completion(R"({"prompt": "ab"})").prompt, "ab");
  EXPECT_EQ(completion(R"({"prompt": ["ab"]})").prompt, "ab");
  EXPECT_THAT(completion(R"({"prompt": [5, 6]})").prompt_ids,
              ElementsAre(5, 6));
  EXPECT_THAT(completion(R"({"prompt": [[5, 6]]})").prompt_ids,
              ElementsAre(5, 6));
  EXPECT_TRUE(completion(R"({"prompt": "a", "logprobs": 0})").form.logprobs);
}

TEST(ApiRequest, AChatMayBeGivenAsTokens) {
  const auto request = parse_api_request(
    ApiKind::chat, R"({"prompt_token_ids": [1, 2]})", stops);
  EXPECT_THAT(request.prompt_ids, ElementsAre(1, 2));
  EXPECT_TRUE(request.messages->is_null());
}

TEST(ApiRequest, HowTokensAreDrawnHasNoEffect) {
  EXPECT_EQ(api_refusal([] {
              chat(R"(, "temperature": 0.2, "top_p": 0.9, "seed": 7,
                      "presence_penalty": 1, "user": "u", "stop": "=",
                      "logit_bias": {}, "tool_choice": "auto")");
            }),
            "accepted");
}

TEST(ApiRequest, WhatCannotBeDoneIsRefusedByName) {
  EXPECT_THAT(api_refusal([] { chat(R"(, "logit_bias": {"5": 1})"); }),
              HasSubstr("logit_bias: "));
  EXPECT_THAT(api_refusal([] { chat(R"(, "stop": ["END"])"); }),
              HasSubstr("among the texts of rollout.stop"));
  EXPECT_THAT(api_refusal([] { chat(R"(, "tool_choice": "required")"); }),
              HasSubstr("tool_choice is auto or none"));
  EXPECT_THAT(api_refusal([] {
                chat(R"(, "response_format": {"type": "json_object"})");
              }),
              HasSubstr("response_format is text"));
  EXPECT_THAT(api_refusal([] { chat(R"(, "n": 0)"); }),
              HasSubstr("n is a whole number from 1 to 128"));
  EXPECT_THAT(
    api_refusal([] { completion(R"({"prompt": "a", "echo": true})"); }),
    HasSubstr("echo"));
  EXPECT_THAT(api_refusal([] { completion("{}"); }),
              HasSubstr("prompt is a text"));
  EXPECT_THAT(api_refusal([] { completion(R"({"prompt": ["a", "b"]})"); }),
              HasSubstr("list of token ids"));
  EXPECT_THAT(api_refusal([] { completion(R"({"prompt": [-1]})"); }),
              HasSubstr("list of token ids"));
  EXPECT_THAT(api_refusal([] { completion("not JSON"); }),
              HasSubstr("the body is a JSON object"));
}

TEST(ApiRequest, ToolsThatMayNotBeCalledAreNotShown) {
  EXPECT_TRUE(
    chat(R"(, "tools": [{"type": "function"}], "tool_choice": "none")")
      .tools->is_null());
}

TEST(ApiRequest, ARewardIsANumber) {
  EXPECT_EQ(parse_reward(R"({"reward": 0.5})"), 0.5);
  EXPECT_THROW(parse_reward(R"({"reward": "high"})"), ApiError);
  EXPECT_THROW(parse_reward("0.5"), ApiError);
}

} // namespace
} // namespace troupe::models
