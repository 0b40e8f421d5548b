#include "config/base/json_levels.hpp"

#include <gtest/gtest.h>

#include <string>

namespace {

using troupe::json_levels_limit;
using troupe::nests_too_deep;

std::string nested(std::size_t levels) {
  return std::string(levels, '[') + std::string(levels, ']');
}

TEST(JsonLevels, TheLimitIsAllowedButOneMoreIsNot) {
  EXPECT_FALSE(nests_too_deep(nested(json_levels_limit)));
  EXPECT_TRUE(nests_too_deep(nested(json_levels_limit + 1)));
  EXPECT_TRUE(nests_too_deep(R"({"a":)" + nested(json_levels_limit) + "}"));
}

TEST(JsonLevels, SiblingsAndBracketsInStringsDoNotCount) {
  std::string many = "[";
  for (int i = 0; i < 1000; ++i)
    many += "[{}],";
  EXPECT_FALSE(nests_too_deep(many + "0]"));
  EXPECT_FALSE(
    nests_too_deep(R"(["\")" + nested(1000).substr(0, 1000) + "\"]"));
  EXPECT_TRUE(nests_too_deep(R"(["\\",)" + nested(1000)));
}

} // namespace
