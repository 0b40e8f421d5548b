// Tests of a shell, as far as texts decide them.
#include "plans/foreign/shell_test.hpp"

#include <gmock/gmock.h>

using namespace troupe;
using namespace troupe::plans;

namespace {

ShellCommand command(const std::string& script) {
  return read_shell("echo " + script, "run.sh").commands.front();
}

/// Returns the value of the test in a script's words.
std::optional<bool> value(const std::string& script) {
  auto words = command(script);
  words.erase(words.begin());
  return value_of_test(words);
}

} // namespace

TEST(ShellTest, TextsDecideEmptinessAndEquality) {
  EXPECT_EQ(value("[ -z '' ]"), true);
  EXPECT_EQ(value("[ -z \"$UNSET\" ]"), true);
  EXPECT_EQ(value("[[ -n x ]]"), true);
  EXPECT_EQ(value("[ a = b ]"), false);
  EXPECT_EQ(value("[[ a == a ]]"), true);
  EXPECT_EQ(value("[ a != a ]"), false);
}

TEST(ShellTest, WhatTheMachineDecidesHasNoValue) {
  for (const char* script : {"[ -f a ]", "[ a ]", "[ 1 -lt 2 ]", "[ -z a",
                             "true", "[ a == b == c ]", "[", "[ ]"})
    EXPECT_EQ(value(script), std::nullopt) << script;
}

TEST(ShellTest, ANegatedTestIsOneAndACommandIsNone) {
  const auto is_test = [](const std::string& script) {
    auto words = command(script);
    words.erase(words.begin());
    return is_shell_test(words);
  };
  EXPECT_TRUE(is_test("! [ a == b ]"));
  EXPECT_TRUE(is_test("test -f a"));
  EXPECT_FALSE(is_test("! grep a b"));
  EXPECT_FALSE(is_test("python3"));
}
