#include "config/error.hpp"
#include "net/line_process.hpp"

#include <gmock/gmock.h>

#include <csignal>

namespace {

using testing::HasSubstr;
using troupe::FailureError;
using troupe::net::LineProcess;

std::string failure_of(LineProcess& process, const std::string& line) {
  try {
    return "answered " + process.ask(line);
  } catch (const FailureError& error) {
    return error.what();
  }
}

TEST(LineProcess, AnswersLineByLine) {
  LineProcess cat({.command = "cat"});
  EXPECT_EQ(cat.ask("one"), "one");
  EXPECT_EQ(cat.ask(""), "");
  const std::string large(100'000, 'x');
  EXPECT_EQ(cat.ask(large), large);
}

TEST(LineProcess, ALateProgramIsKilledAndReplaced) {
  LineProcess slow(
    {.command = "sh -c 'read x; if [ $x = wait ]; then sleep 60; fi; echo $x'",
     .deadline = std::chrono::milliseconds(300)});
  EXPECT_THAT(failure_of(slow, "wait"), HasSubstr("no answer within 300 ms"));
  EXPECT_EQ(slow.ask("go"), "go");
}

TEST(LineProcess, AProgramThatEndsIsNamedAndStartedAgain) {
  LineProcess once({.command = "sh -c 'read x; echo $x'"});
  EXPECT_EQ(once.ask("a"), "a");
  LineProcess none({.command = "/bin/false"});
  EXPECT_THAT(failure_of(none, "a"), HasSubstr("/bin/false"));
  EXPECT_THAT(failure_of(none, "a"), HasSubstr("ended"));
}

TEST(LineProcess, ALineIsOneLine) {
  LineProcess cat({.command = "cat"});
  EXPECT_THAT(failure_of(cat, "a\nb"), HasSubstr("no line break"));
}

} // namespace
