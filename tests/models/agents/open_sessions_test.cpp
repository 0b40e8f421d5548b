// Which worker has a session, and which session a program takes next.
#include "models/agents/open_sessions.hpp"

#include <gtest/gtest.h>

namespace troupe::models {
namespace {

TEST(OpenSessions, AKeyLeadsToTheWorkerThatOpenedItUntilItIsClosed) {
  OpenSessions sessions;
  sessions.open("a", WorkerId{2}, /*waits=*/false);
  sessions.open("b", WorkerId{0}, /*waits=*/true);
  EXPECT_EQ(sessions.worker_of("a"), WorkerId{2});
  EXPECT_EQ(sessions.worker_of("b"), WorkerId{0});
  EXPECT_EQ(sessions.worker_of("c"), std::nullopt);
  sessions.close("a");
  sessions.close("never opened");
  EXPECT_EQ(sessions.worker_of("a"), std::nullopt);
  EXPECT_EQ(sessions.size(), 1U);
}

TEST(OpenSessions, TheOneThatHasWaitedLongestIsTakenFirstAndOnce) {
  OpenSessions sessions;
  sessions.open("ours", WorkerId{0}, /*waits=*/false);
  sessions.open("first", WorkerId{1}, /*waits=*/true);
  sessions.open("second", WorkerId{0}, /*waits=*/true);
  EXPECT_EQ(sessions.take(), "first");
  EXPECT_EQ(sessions.take(), "second");
  EXPECT_EQ(sessions.take(), std::nullopt);
  EXPECT_EQ(sessions.worker_of("first"), WorkerId{1}) << "it goes on";
}

TEST(OpenSessions, AClosedOneIsNotTaken) {
  OpenSessions sessions;
  sessions.open("a", WorkerId{0}, /*waits=*/true);
  sessions.open("b", WorkerId{0}, /*waits=*/true);
  sessions.close("a");
  EXPECT_EQ(sessions.take(), "b");
}

} // namespace
} // namespace troupe::models
