// The tokens that a request gives to the model: those that the record lacks.
#include "models/agents/agent_prompt.hpp"
#include "models/agents/api_error.hpp"

#include "tests/support/models/agent_support.hpp"
#include <gmock/gmock.h>

namespace troupe::models {
namespace {

using nlohmann::ordered_json;
using testing::characters;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::ToldSession;
using testing::user_says;

TEST(AgentPrompt, AnAnswerIsContinuedByItsOwnTokens) {
  ToldSession session;
  auto messages = ordered_json::array({user_says("hi")});
  messages.push_back(session.chat(messages, "yo"));
  messages.push_back(user_says("so"));
  session.chat(messages, "no");
  EXPECT_EQ(session.spelled(), "<|say|>user\nhi<|end|>\n<|say|>assistant\nyo"
                               "<|end|>\n<|say|>user\nso<|end|>\n"
                               "<|say|>assistant\nno<|end|>");
  EXPECT_EQ(session.said(), "yo<|end|>no<|end|>");
  EXPECT_TRUE(session.last_prompt.after.has_value());
}

TEST(AgentPrompt, ACutAnswerGetsItsEndFromTheTemplate) {
  ToldSession session;
  auto messages = ordered_json::array({user_says("hi")});
  messages.push_back(session.chat(messages, "yo", /*truncated=*/true));
  messages.push_back(user_says("so"));
  session.chat(messages, "no");
  EXPECT_EQ(session.said(), "yono<|end|>");
  EXPECT_THAT(session.spelled(), HasSubstr("yo<|end|>\n<|say|>user"));
}

TEST(AgentPrompt, ThoughtsThatATemplateDropsStayInTheTokens) {
  ToldSession session(
    characters("{% for m in messages %}<|say|>{{ m.role }}\n"
               "{{ m.content if loop.last else m.content.split('/think')[-1] }}"
               "<|end|>\n{% endfor %}"
               "{% if add_generation_prompt %}<|say|>assistant\n{% endif %}"));
  auto messages = ordered_json::array({user_says("hi")});
  messages.push_back(session.chat(messages, "hm /think yo"));
  messages.push_back(user_says("so"));
  session.chat(messages, "no");
  EXPECT_TRUE(session.last_prompt.after.has_value());
  EXPECT_EQ(session.said(), "hm /think yo<|end|>no<|end|>");
}

TEST(AgentPrompt, AnAnswerThatTheTemplateDoesNotShowBeginsABranch) {
  ToldSession session(
    characters("{% for m in messages %}<|say|>{{ m.role }}\n"
               "{{ m.content if m.role == 'user' else m.content | length }}"
               "<|end|>\n{% endfor %}"
               "{% if add_generation_prompt %}<|say|>assistant\n{% endif %}"));
  auto messages = ordered_json::array({user_says("hi")});
  messages.push_back(session.chat(messages, "yo"));
  messages.push_back(user_says("so"));
  session.chat(messages, "no");
  EXPECT_FALSE(session.last_prompt.after.has_value());
  EXPECT_EQ(session.said(), "no<|end|>");
  EXPECT_EQ(session.record.ends().size(), 2U);
}

TEST(AgentPrompt, ACallAndTheToolsAnswerContinue) {
  ToldSession session;
  const std::string call
    = R"(<tool_call>{"name": "f", "arguments": {"x": 1}}</tool_call>)";
  auto body = ordered_json::parse(
    R"({"messages": [{"role": "user", "content": "hi"}],
        "tools": [{"type": "function"}]})");
  auto said = session.ask(ApiKind::chat, body.dump(), call);
  // clients send arguments back as a text
  said["tool_calls"][0]["function"]["arguments"] = R"({"x": 1})";
  said["content"] = nullptr;
  body["messages"].push_back(said);
  body["messages"].push_back(
    {{"role", "tool"}, {"tool_call_id", "0"}, {"content", "2"}});
  session.ask(ApiKind::chat, body.dump(), "two");
  EXPECT_EQ(session.said(), call + "<|end|>two<|end|>");
  EXPECT_THAT(session.spelled(), HasSubstr("<|say|>tool\n2<|end|>"));
  // without the tools the prompt is another one
  body.erase("tools");
  session.ask(ApiKind::chat, body.dump(), "x");
  EXPECT_FALSE(session.last_prompt.after.has_value());
}

TEST(AgentPrompt, AnEarlierMessageThatChangedBeginsABranch) {
  ToldSession session;
  auto messages = ordered_json::array({user_says("hi")});
  messages.push_back(session.chat(messages, "yo"));
  messages[1]["content"] = "edited";
  messages.push_back(user_says("so"));
  session.chat(messages, "no");
  EXPECT_FALSE(session.last_prompt.after.has_value());
  EXPECT_EQ(session.said(), "no<|end|>");
  EXPECT_THAT(session.spelled(), HasSubstr("edited"));
}

TEST(AgentPrompt, TextsContinueByWhatIsNew) {
  ToldSession session;
  session.ask(ApiKind::completion, R"({"prompt": "a="})", "7");
  session.ask(ApiKind::completion, R"({"prompt": "a=7;b="})", "8");
  EXPECT_EQ(session.spelled(), "a=7<|end|>;b=8<|end|>");
  EXPECT_EQ(session.said(), "7<|end|>8<|end|>");
}

TEST(AgentPrompt, TokensContinueTheBranchTheyBeginWith) {
  ToldSession session;
  session.ask(ApiKind::completion, R"({"prompt": [97]})", "b");
  session.ask(ApiKind::completion, R"({"prompt": [97, 98, 200, 99]})", "d");
  EXPECT_THAT(session.last_prompt.given, ElementsAre(99));
  EXPECT_EQ(session.said(), "b<|end|>d<|end|>");
  session.ask(ApiKind::completion, R"({"prompt": [98]})", "d");
  EXPECT_FALSE(session.last_prompt.after.has_value());
}

TEST(AgentPrompt, WhatTheModelDoesNotKnowIsRefused) {
  const auto tokenizer = characters(nullptr);
  const SessionRecord record;
  const auto ask = [&](ApiKind kind, const char* body) {
    try {
      agent_prompt(parse_api_request(kind, body, {}), record, tokenizer,
                   nullptr);
    } catch (const ApiError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_THAT(ask(ApiKind::completion, R"({"prompt": [5000]})"),
              HasSubstr("token id 5000 is not one of the "));
  EXPECT_THAT(ask(ApiKind::completion, R"({"prompt": ""})"),
              HasSubstr("no tokens"));
  EXPECT_THAT(ask(ApiKind::chat, R"({"messages": [{"role": "user"}]})"),
              HasSubstr("no chat template"));
}

} // namespace
} // namespace troupe::models
