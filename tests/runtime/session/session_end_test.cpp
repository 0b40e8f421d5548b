// How a session ends when its signs arrive in any order.
#include "runtime/session/session_end.hpp"

#include <gtest/gtest.h>

namespace troupe::runtime {
namespace {

Failure failed_with(Errc code, const std::string& what) {
  return {.code = code, .who = "worker 1", .what = what, .cause = ""};
}

class SessionEndTest : public ::testing::Test {
protected:
  using Kind = actors::RunEnd::Kind;

  SessionEnd end_{StepId{3}, std::make_shared<actors::AskTable>()};
  SessionEnd::Time now_ = std::chrono::steady_clock::now();
};

TEST_F(SessionEndTest, TheFirstFailureIsKept) {
  EXPECT_FALSE(end_.has_come());
  end_.fail(failed_with(Errc::io, "first"));
  end_.fail(failed_with(Errc::io, "second"));
  end_.hear({.kind = Kind::done}, now_);
  ASSERT_TRUE(end_.has_come_as(Kind::failed));
  EXPECT_EQ(end_.get().failure.what, "first");
  EXPECT_EQ(end_.get().next_step, StepId{3});
}

// The recovery compares steps: two deaths in one step of one worker end a run.
TEST_F(SessionEndTest, AFailureIsInTheFirstStepThatIsNotCommitted) {
  end_.commit(StepId{9});
  end_.fail(failed_with(Errc::peer_lost, "killed by signal 9"));
  EXPECT_EQ(end_.get().next_step, StepId{9});
}

TEST_F(SessionEndTest, ALostPeerWaitsForTheDeathThatExplainsIt) {
  const actors::RunEnd by_peer{
    .kind = Kind::failed, .failure = failed_with(Errc::peer_lost, "closed")};
  end_.hear(by_peer, now_);
  EXPECT_FALSE(end_.has_come());
  EXPECT_TRUE(end_.waits_for_death());
  EXPECT_TRUE(end_.look(now_).empty());
  EXPECT_FALSE(end_.has_come());
  end_.look(now_ + std::chrono::minutes{10});
  ASSERT_TRUE(end_.has_come_as(Kind::failed));
  EXPECT_EQ(end_.get().failure.what, "closed");
}

TEST_F(SessionEndTest, AKnownDeathExplainsALostPeerAtOnce) {
  end_.add_death(
    {.worker = WorkerId{1},
     .failure = failed_with(Errc::peer_lost, "killed by signal 9")});
  end_.hear(
    {.kind = Kind::failed, .failure = failed_with(Errc::peer_lost, "closed")},
    now_);
  ASSERT_TRUE(end_.has_come_as(Kind::failed));
  EXPECT_EQ(end_.get().failure.what, "killed by signal 9");
}

TEST_F(SessionEndTest, ASignalIsRecordedButEndsNothing) {
  end_.ask(2);
  EXPECT_EQ(end_.signal(), 2);
  EXPECT_FALSE(end_.has_come());
  end_.stop_now();
  EXPECT_TRUE(end_.has_come_as(Kind::stopped));
}

} // namespace
} // namespace troupe::runtime
