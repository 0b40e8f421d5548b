// Messages as clients write them, in one form.
#include "models/agents/api_error.hpp"
#include "models/agents/chat_messages.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace troupe::models {
namespace {

using nlohmann::ordered_json;

ordered_json normal(const char* messages) {
  return normal_messages(ordered_json::parse(messages));
}

TEST(ChatMessages, ContentIsATextHoweverItCame) {
  const auto messages = normal(
    R"([{"role": "system", "content": null},
        {"role": "user", "content": [{"type": "text", "text": "a"},
                                     {"type": "text", "text": "b"}]}])");
  EXPECT_EQ(messages[0]["content"], "");
  EXPECT_EQ(messages[1]["content"], "ab");
}

TEST(ChatMessages, ArgumentsOfCallsAreValues) {
  const auto messages = normal(
    R"([{"role": "assistant", "content": null, "refusal": null, "tool_calls":
         [{"id": "c1", "type": "function", "index": 0,
           "function": {"name": "add", "arguments": "{\"a\": 1}"}}]},
        {"role": "tool", "tool_call_id": "c1", "content": "2"}])");
  EXPECT_EQ(messages[0]["tool_calls"][0]["function"]["arguments"]["a"], 1);
  EXPECT_FALSE(messages[0].contains("refusal"));
  EXPECT_EQ(messages[1]["tool_call_id"], "c1");
}

TEST(ChatMessages, WhatIsNoTextIsRefused) {
  EXPECT_THROW(normal("[]"), ApiError);
  EXPECT_THROW(normal(R"([{"content": "x"}])"), ApiError);
  EXPECT_THROW(normal(R"([{"role": "user", "content": 7}])"), ApiError);
  EXPECT_THROW(normal(R"([{"role": "user", "content":
                           [{"type": "image_url", "image_url": {}}]}])"),
               ApiError);
  EXPECT_THROW(
    normal(R"([{"role": "assistant", "tool_calls": [{"id": "1"}]}])"),
    ApiError);
}

TEST(ChatMessages, AreTheSameWhateverIdsAndOrderOfArguments) {
  const auto a = normal(R"([{"role": "assistant", "tool_calls": [{"id": "1",
    "function": {"name": "f", "arguments": {"x": 1, "y": 2}}}]}])");
  const auto b = normal(R"([{"role": "assistant", "tool_calls": [{"id": "2",
    "function": {"name": "f", "arguments": "{\"y\": 2, \"x\": 1}"}}]}])");
  const auto other = normal(R"([{"role": "assistant", "tool_calls": [
    {"function": {"name": "f", "arguments": {"x": 1, "y": 3}}}]}])");
  EXPECT_TRUE(is_same_message(a[0], b[0]));
  EXPECT_FALSE(is_same_message(a[0], other[0]));
  EXPECT_FALSE(is_same_message(
    a[0], normal(R"([{"role": "assistant", "content": ""}])")[0]));
}

} // namespace
} // namespace troupe::models
