// Child processes of user-defined actors, through the actor that runs them.
#include <caf/all.hpp>

#include "troupe/process_pool.hpp"
#include <gmock/gmock.h>

namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;

class LineActorTest : public ::testing::Test {
protected:
  /// Returns the program's reply to each line, or the error.
  std::vector<std::string> ask(const std::string& command,
                               const std::vector<std::string>& lines,
                               std::chrono::milliseconds deadline = 10s) {
    const auto actor
      = troupe::detail::spawn_line_actor(system_, command, deadline);
    caf::scoped_actor self(system_);
    std::vector<std::string> replies;
    for (const auto& line : lines)
      self
        ->request(actor, caf::infinite, troupe::detail::line_atom::value, line)
        .receive([&](const std::string& said) { replies.push_back(said); },
                 [&](const caf::error& error) {
                   replies.push_back("failed: " + system_.render(error));
                 });
    caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
    return replies;
  }

  caf::actor_system_config config_;
  caf::actor_system system_{config_};
};

TEST_F(LineActorTest, RepliesLineByLine) {
  const std::string large(100'000, 'x');
  EXPECT_THAT(ask("cat", {"one", large}), ::testing::ElementsAre("one", large));
}

TEST_F(LineActorTest, AProgramThatExceedsItsTimeoutIsKilledAndReplaced) {
  const auto replies
    = ask("sh -c 'read x; if [ $x = wait ]; then sleep 60; fi; echo $x'",
          {"wait", "go"}, 1s); // in which "go" is answered
  EXPECT_THAT(replies[0], HasSubstr("no answer within 1 s (deadline)"));
  EXPECT_EQ(replies[1], "go");
}

TEST_F(LineActorTest, AProgramThatExitsIsNamedAndRestarted) {
  EXPECT_THAT(ask("sh -c 'read x; echo $x'", {"a"}),
              ::testing::ElementsAre("a"));
  for (const auto& reply : ask("/bin/false", {"a", "a", "a", "a"})) {
    EXPECT_THAT(reply, HasSubstr("/bin/false"));
    EXPECT_THAT(reply, HasSubstr("ended"));
  }
}

} // namespace
