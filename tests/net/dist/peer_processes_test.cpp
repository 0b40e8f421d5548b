// Ends of peer processes are detected with and without a free descriptor.
#include "net/collectives/peer_processes.hpp"

#include <gtest/gtest.h>

#include "tests/net/dist/forked_peer.hpp"
#include <sys/resource.h>

namespace troupe::net {
namespace {

using testing::ForkedPeer;
using testing::Talk;

/// A process that lives until it is told to end.
struct WaitingPeer {
  ForkedPeer peer{[](const Talk& talk) {
    talk.say(static_cast<std::int32_t>(::getpid()));
    talk.hear<int>();
  }};
  std::int32_t pid = peer.talk().hear<std::int32_t>();

  void end() {
    peer.talk().say(0);
    EXPECT_EQ(peer.wait(), 0);
  }
};

/// Leaves no free descriptor while it lives.
class NoMoreDescriptors {
public:
  NoMoreDescriptors() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit none{3, before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoMoreDescriptors() {
    ::setrlimit(RLIMIT_NOFILE, &before_);
  }

private:
  rlimit before_{};
};

TEST(PeerProcesses, AreSharedByAllReaders) {
  WaitingPeer peer;
  PeerProcesses processes;
  const auto first = processes.find(peer.pid);
  EXPECT_EQ(first, processes.find(peer.pid));
  EXPECT_FALSE(first->ended());
  peer.end();
  EXPECT_TRUE(first->ended());
}

TEST(PeerProcesses, AreOpenedAgainAfterTheLastReaderReleasedThem) {
  WaitingPeer peer;
  PeerProcesses processes;
  processes.find(peer.pid).reset();
  peer.end();
  EXPECT_TRUE(processes.find(peer.pid)->ended()) << "collected before the look";
}

TEST(PeerProcesses, TheirEndIsDetectedWithoutADescriptor) {
  WaitingPeer peer;
  PeerProcesses processes;
  std::shared_ptr<const PeerProcess> found;
  {
    const NoMoreDescriptors full;
    found = processes.find(peer.pid);
  }
  EXPECT_FALSE(found->ended());
  peer.end();
  EXPECT_TRUE(found->ended());
}

} // namespace
} // namespace troupe::net
