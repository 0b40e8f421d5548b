// Real child processes that reply to lines, crash, hang or never start.
#include "config/base/error.hpp"
#include "net/base/wake_event.hpp"
#include "net/child_programs/line_programs.hpp"

#include "tests/net/dist/held_dead.hpp"
#include "tests/support/net/heard_lines.hpp"
#include "tests/support/temp_folder.hpp"
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <thread>

namespace troupe::net {
namespace {

using test::HeardLines;
using test::number_lines;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

class LineProgramsTest : public ::testing::Test {
protected:
  LineProgramOptions shell(const std::string& script,
                           std::uint32_t workers = 1) const {
    LineProgramOptions options;
    options.name = "program";
    options.argv = {"sh", "-c", script};
    options.log_folder = folder_;
    options.workers = workers;
    options.window = 4;
    return options;
  }
  static std::string refusal(const LineProgramOptions& options) {
    HeardLines heard;
    LinePrograms programs(options);
    try {
      programs.run(number_lines(3), heard.handler(), nullptr);
    } catch (const FailureError& error) {
      EXPECT_EQ(error.failure().code, Errc::bad_input);
      return error.what();
    }
    return "no failure";
  }

  bool can_hold_ = false;
  const support::TempFolder temp_;
  const std::filesystem::path folder_ = temp_.path();
};

TEST_F(LineProgramsTest, ReplyToEveryLineInEveryRound) {
  LinePrograms programs(
    shell("while read n; do echo \"$n $((n * 2))\"; done", 3));
  for (int round = 0; round < 3; ++round) {
    HeardLines heard;
    programs.run(number_lines(50), heard.handler(), nullptr);
    EXPECT_EQ(heard.replies.size(), 50U);
    EXPECT_EQ(heard.replies.at(49), "49 98");
    EXPECT_TRUE(heard.losses.empty());
  }
}

TEST_F(LineProgramsTest, GetNewLinesWhileTheyReply) {
  LinePrograms programs(shell("while read n; do echo \"$n x\"; done", 2));
  WakeEvent more;
  int next = 0;
  LineSource source;
  source.more = &more;
  source.take = [&] {
    return next < 3 ? std::vector{std::to_string(next++)}
                    : std::vector<std::string>{};
  };
  HeardLines heard;
  auto handler = heard.handler();
  handler.on_reply
    = [&, listen = handler.on_reply](std::size_t line, std::string_view reply) {
        listen(line, reply);
        more.ring();
      };
  programs.run(source, handler, nullptr);
  EXPECT_EQ(heard.replies.size(), 3U);
}

TEST_F(LineProgramsTest, MayReplyInAnyOrder) {
  LinePrograms programs(
    shell("while read a; do read b; echo \"$b x\"; echo \"$a x\"; done"));
  HeardLines heard;
  programs.run(number_lines(20), heard.handler(), nullptr);
  EXPECT_EQ(heard.replies.size(), 20U);
}

TEST_F(LineProgramsTest, ACrashFailsOneLineAndRestartsTheProgram) {
  LinePrograms programs(shell("while read n; do [ $n = 5 ] && "
                              "{ echo boom >&2; exit 9; }; echo \"$n x\"; "
                              "done"));
  HeardLines heard;
  programs.run(number_lines(20), heard.handler(), nullptr);
  EXPECT_EQ(heard.replies.size(), 19U);
  EXPECT_THAT(heard.losses.at(5), HasSubstr("exit code 9: boom"));
  EXPECT_EQ(heard.late, 0);
}

TEST_F(LineProgramsTest, AKillFailsNoLine) {
  const auto killed = (folder_ / "killed").string();
  LinePrograms programs(shell("while read n; do [ $n = 5 ] && mkdir " + killed
                              + " && kill -9 $$; echo \"$n x\"; done"));
  HeardLines heard;
  programs.run(number_lines(20), heard.handler(), nullptr);
  EXPECT_EQ(heard.replies.size(), 20U);
  EXPECT_TRUE(heard.losses.empty());
  EXPECT_TRUE(std::filesystem::exists(killed));
}

TEST_F(LineProgramsTest, ALineThatEndsInAKillTwiceIsLost) {
  LinePrograms programs(
    shell("while read n; do [ $n = 5 ] && kill -9 $$; echo \"$n x\"; done"));
  HeardLines heard;
  programs.run(number_lines(20), heard.handler(), nullptr);
  EXPECT_EQ(heard.replies.size(), 19U);
  EXPECT_THAT(heard.losses.at(5), HasSubstr("killed by signal 9"));
}

TEST_F(LineProgramsTest, ATimeoutFailsOneLine) {
  auto options = shell("while read n; do [ $n = 2 ] && sleep 1000; "
                       "echo \"$n x\"; done");
  options.deadline = {.silence = 1s, .setting = "program.timeout"};
  LinePrograms programs(options);
  HeardLines heard;
  programs.run(number_lines(6), heard.handler(), nullptr);
  EXPECT_EQ(heard.replies.size(), 5U);
  EXPECT_EQ(heard.losses.at(2), "no answer within 1 s (program.timeout)");
  EXPECT_EQ(heard.late, 1);
}

TEST_F(LineProgramsTest, RepliesToNoRequestAreUnmatched) {
  LinePrograms programs(
    shell("while read n; do echo '? what'; echo '99 x'; echo \"$n x\"; done"));
  HeardLines heard;
  programs.run(number_lines(3), heard.handler(), nullptr);
  EXPECT_EQ(heard.replies.size(), 3U);
  EXPECT_GE(heard.unmatched, 5); // the last ones may still be in flight
}

TEST_F(LineProgramsTest, AnotherTakesOverFromOneThatCannotBeKilled) {
  const testing::HeldDead held;
  const auto output = folder_ / "program_0.log";
  LinePrograms programs(shell("if mkdir " + (folder_ / "first").string()
                              + "; then "
                                "echo $$ >&2; while ! [ -e "
                              + (folder_ / "held").string()
                              + " ]; "
                                "do :; done; exec >&-; sleep 1000; fi; "
                                "while read n; do echo \"$n x\"; done"));
  std::thread holder([&] {
    while (support::read_text(output).find('\n') == std::string::npos)
      std::this_thread::yield();
    can_hold_ = held.hold(std::stoi(support::read_text(output)));
    std::ofstream(folder_ / "held") << "";
  });
  HeardLines heard;
  programs.run(number_lines(3), heard.handler(), nullptr);
  holder.join();
  if (!can_hold_)
    GTEST_SKIP() << "this machine allows no tracing";
  EXPECT_EQ(heard.losses.size(), 1U);
  EXPECT_THAT(heard.losses.at(0), HasSubstr("closed its output"));
  EXPECT_EQ(heard.replies.size(), 2U);
}

TEST_F(LineProgramsTest, LongLinesPassInBothDirections) {
  LinePrograms programs(shell("while read n x; do echo \"$n $x\"; done"));
  std::vector<std::string> lines;
  for (int i = 0; i < 4; ++i)
    lines.push_back(std::to_string(i) + " " + std::string(300'000, 'x'));
  HeardLines heard;
  programs.run(lines, heard.handler(), nullptr);
  EXPECT_EQ(heard.replies.at(3).size(), 300'002U);
}

TEST_F(LineProgramsTest, AProgramThatDiesAtStartIsRefusedWithItsStderr) {
  EXPECT_THAT(
    refusal(shell("echo no such module >&2; exit 3")),
    HasSubstr("exit code 3 before it answered anything: no such module"));
  EXPECT_THAT(refusal(shell("exec /nowhere/scorer")), HasSubstr("scorer"));
  auto missing = shell("");
  missing.argv = {"/nowhere/scorer"};
  EXPECT_THAT(refusal(missing), HasSubstr("cannot execute /nowhere/scorer"));
}

TEST_F(LineProgramsTest, GetLinesOnlyOnceTheyAreReady) {
  auto options = shell("echo ready; while read n; do echo \"$n x\"; done", 2);
  options.ready_line = "ready";
  LinePrograms programs(options);
  HeardLines heard;
  programs.run(number_lines(9), heard.handler(), nullptr);
  EXPECT_EQ(heard.replies.size(), 9U);
  EXPECT_EQ(heard.unmatched, 0);
  options.argv = {"sh", "-c", "echo broken >&2; exit 1"};
  EXPECT_THAT(refusal(options), HasSubstr("broken"));
}

TEST_F(LineProgramsTest, StoppingEndsTheWait) {
  LinePrograms programs(shell("sleep 1000"));
  HeardLines heard;
  const std::atomic<bool> stop{true};
  EXPECT_THROW(programs.run(number_lines(1), heard.handler(), &stop),
               FailureError);
}

TEST_F(LineProgramsTest, AreLimitedAndLeaveNoCoreFiles) {
  LinePrograms programs(
    shell("while read n; do echo \"$n $(ulimit -c) $(ulimit -d)\"; done"));
  HeardLines heard;
  programs.run(number_lines(1), heard.handler(), nullptr);
  EXPECT_EQ(heard.replies.at(0), "0 0 16777216");
}

} // namespace
} // namespace troupe::net
