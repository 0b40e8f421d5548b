#include "runtime/launch/root_cause.hpp"

#include <gtest/gtest.h>

namespace troupe::runtime {
namespace {

using std::chrono::milliseconds;

const RootCause::Time broke_at{};
Failure peer_lost(const std::string& what) {
  return {Errc::peer_lost, "worker", what, ""};
}

const LostWorker unreachable{WorkerId{1}, peer_lost("connection closed")};
const LostWorker killed{WorkerId{1}, peer_lost("killed by signal 9")};

TEST(RootCause, AnExitStatusInTimeExplainsABrokenConnection) {
  RootCause cause;
  cause.connection_broke(unreachable, broke_at);
  EXPECT_TRUE(cause.unexplained(broke_at + milliseconds{300}).empty());
  cause.add_death(killed);
  EXPECT_TRUE(cause.unexplained(broke_at + milliseconds{900}).empty());
  EXPECT_EQ(cause.first_death()->failure.what, "killed by signal 9");
}

TEST(RootCause, AnUnexplainedBrokenConnectionIsALoss) {
  RootCause cause;
  cause.connection_broke(unreachable, broke_at);
  // a second sign of it does not extend the wait
  cause.connection_broke(unreachable, broke_at + milliseconds{200});
  const auto found = cause.unexplained(broke_at + milliseconds{301});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].worker, WorkerId{1});
  EXPECT_EQ(found[0].failure.what, "connection closed");
}

TEST(RootCause, AnExitForALostPeerWaitsForTheBrokenConnection) {
  RootCause cause;
  EXPECT_FALSE(cause.holds_end());
  cause.connection_broke(unreachable, broke_at);
  cause.hold({.failure = peer_lost("a peer is lost")}, broke_at);
  EXPECT_TRUE(cause.holds_end());
  EXPECT_EQ(cause.unexplained(broke_at + milliseconds{301}).size(), 1U);
  EXPECT_FALSE(cause.unexplained_end(broke_at + milliseconds{600}));
  const auto end = cause.unexplained_end(broke_at + milliseconds{601});
  ASSERT_TRUE(end);
  EXPECT_EQ(end->failure.what, "a peer is lost");
}

TEST(RootCause, TheFirstOfSeveralDeathsIsKept) {
  RootCause cause;
  EXPECT_FALSE(cause.first_death());
  cause.add_death(killed);
  cause.add_death({WorkerId{0}, peer_lost("exit status 1")});
  EXPECT_EQ(cause.first_death()->worker, WorkerId{1});
}

} // namespace
} // namespace troupe::runtime
