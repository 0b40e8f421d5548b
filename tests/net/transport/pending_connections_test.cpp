// The rule for connections that have not yet shown who they are.
#include "net/base/defaults.hpp"
#include "net/transport/pending_connections.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace troupe::net {
namespace {

using namespace std::chrono_literals;

class PendingConnectionsTest : public ::testing::Test {
protected:
  /// Lets a connection in that notes when it is closed.
  void come() {
    auto entry = pending_->add(now_);
    entry.when_late([this] { ++num_closed_; });
    entries_.push_back(std::move(entry));
  }
  void fill() {
    while (!pending_->full())
      come();
  }

  std::shared_ptr<PendingConnections> pending_
    = std::make_shared<PendingConnections>();
  PendingConnections::Time now_{1h};
  std::vector<PendingConnections::Entry> entries_;
  int num_closed_ = 0;
};

TEST_F(PendingConnectionsTest, FewWaitAtATime) {
  fill();
  EXPECT_EQ(entries_.size(), kMaxUngreeted);
  entries_.front().leave();
  EXPECT_FALSE(pending_->full());
  entries_.clear();
  EXPECT_TRUE(pending_->empty());
  EXPECT_EQ(num_closed_, 0);
}

TEST_F(PendingConnectionsTest, NoneWaitsForLong) {
  come();
  now_ += kGreetWithin - 1ms;
  come();
  pending_->close_late(now_);
  EXPECT_EQ(num_closed_, 0);
  now_ += 1ms;
  pending_->close_late(now_);
  EXPECT_EQ(num_closed_, 1);
  entries_.clear();
  EXPECT_EQ(num_closed_, 1) << "its place was gone already";
}

TEST_F(PendingConnectionsTest, ANewcomerGetsThePlaceOfTheOneThatWaitedLongest) {
  fill();
  EXPECT_FALSE(pending_->make_room(now_)) << "they have had no time yet";
  EXPECT_EQ(num_closed_, 0);
  now_ += kYieldAfter;
  EXPECT_TRUE(pending_->make_room(now_));
  EXPECT_EQ(num_closed_, 1);
  come();
  EXPECT_TRUE(pending_->full());
}

TEST_F(PendingConnectionsTest, ClosingMayEndItsHolder) {
  auto entry = std::make_unique<PendingConnections::Entry>(pending_->add(now_));
  auto* held = entry.get();
  held->when_late([&entry] { entry.reset(); });
  pending_->close_late(now_ + kGreetWithin);
  EXPECT_EQ(entry, nullptr);
  EXPECT_TRUE(pending_->empty());
}

} // namespace
} // namespace troupe::net
