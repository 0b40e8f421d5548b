// JSON that strangers wrote: nested as deep as a tool's schema, no deeper.
#include "models/agents/shallow_json.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <string>

namespace troupe::models {
namespace {

std::string nested_lists(int depth) {
  const auto count = static_cast<std::size_t>(depth);
  return std::string(count, '[') + std::string(count, ']');
}

TEST(ShallowJson, IsParsed) {
  EXPECT_EQ(parse_shallow_json(R"({"a": [1]})")["a"][0], 1);
  EXPECT_FALSE(
    parse_shallow_json(nested_lists(most_json_depth)).is_discarded());
}

TEST(ShallowJson, DeepNestingIsNoJson) {
  EXPECT_TRUE(
    parse_shallow_json(nested_lists(most_json_depth + 1)).is_discarded());
  EXPECT_TRUE(parse_shallow_json(std::string(1 << 20, '[')).is_discarded());
}

TEST(ShallowJson, BracketsInTextsDoNotCount) {
  const auto text = R"({"a": ")" + std::string(100, '[') + R"(\"[[["})";
  EXPECT_EQ(parse_shallow_json(text)["a"].get<std::string>().size(), 104U);
}

TEST(ShallowJson, WhatIsNoJsonIsDiscarded) {
  for (const char* text : {"", "{", "{\"a\": }", "\xff", "[1] 2"})
    EXPECT_TRUE(parse_shallow_json(text).is_discarded()) << text;
}

} // namespace
} // namespace troupe::models
