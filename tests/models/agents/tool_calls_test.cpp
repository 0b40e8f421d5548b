// Calls of tools in what a model wrote.
#include "models/agents/tool_calls.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace troupe::models {
namespace {

constexpr const char* one_call = R"(<tool_call>
{"name": "add", "arguments": {"a": 1, "b": 2}}
</tool_call>)";

TEST(ToolCalls, AreTakenOffTheText) {
  const auto said = split_tool_calls(std::string("I add.\n\n") + one_call);
  EXPECT_EQ(said.content, "I add.");
  ASSERT_EQ(said.calls.size(), 1U);
  EXPECT_EQ(said.calls[0].name, "add");
  EXPECT_EQ((*said.calls[0].arguments)["b"], 2);
}

TEST(ToolCalls, MayBeSeveral) {
  const auto said
    = split_tool_calls(std::string(one_call) + "\n" + one_call + "\n");
  EXPECT_EQ(said.content, "");
  EXPECT_EQ(said.calls.size(), 2U);
}

TEST(ToolCalls, TheLastMayBeCutBeforeItsClosingTag) {
  const auto said
    = split_tool_calls(R"(<tool_call>{"name": "f", "arguments": {}})");
  ASSERT_EQ(said.calls.size(), 1U);
  EXPECT_EQ(said.calls[0].name, "f");
}

TEST(ToolCalls, WhatIsNoCallIsText) {
  for (const std::string text :
       {"no call", "<tool_call>not JSON</tool_call>",
        "<tool_call>{\"arguments\": {}}</tool_call>",
        "<tool_call>{\"name\": \"f\", \"arguments\": 3}</tool_call>",
        "<tool_call>{\"name\": \"f\", \"argum"}) {
    const auto said = split_tool_calls(text);
    EXPECT_EQ(said.content, text);
    EXPECT_TRUE(said.calls.empty()) << text;
  }
}

TEST(ToolCalls, TextAfterACallMakesAllOfItText) {
  const auto text = std::string(one_call) + " and so on";
  EXPECT_EQ(split_tool_calls(text).content, text);
}

} // namespace
} // namespace troupe::models
