// Channels between two members: order, both directions at once, ends, and
// memory of a device.
#include "net/collectives/host_collectives.hpp"
#include "net/collectives/staged_collectives.hpp"

#include "tests/support/net/far_pages.hpp"
#include <gmock/gmock.h>

#include <array>
#include <thread>

namespace troupe::net {
namespace {

struct Ends {
  GroupRegistry registry;
  std::shared_ptr<Channel> join(std::uint32_t end) {
    return make_host_channel(spec(end), registry);
  }
  std::shared_ptr<Channel> join(std::uint32_t end,
                                const ChannelDevice& device) {
    const auto host = make_channel_groups(spec(end), registry);
    return std::make_shared<Channel>(
      ChannelGroups{make_staged_collectives(host.out, *device.memory),
                    make_staged_collectives(host.in, *device.memory)},
      device);
  }

private:
  static GroupSpec spec(std::uint32_t end) {
    GroupSpec made;
    made.name = "pair";
    made.index = end;
    made.members.resize(2);
    made.progress_deadline = std::chrono::milliseconds(2000);
    return made;
  }
};

TEST(Channel, MessagesArriveInOrderAndASendDoesNotWait) {
  Ends ends;
  const auto left = ends.join(0);
  const auto right = ends.join(1);
  for (std::int32_t i = 0; i < 20; ++i)
    left->send(&i, sizeof i, "count"); // before any receive
  for (std::int32_t i = 0; i < 20; ++i) {
    std::int32_t got = -1;
    right->receive(&got, sizeof got, "count");
    EXPECT_EQ(got, i);
  }
}

TEST(Channel, BothEndsMaySendBeforeTheyReceive) {
  Ends ends;
  const auto left = ends.join(0);
  const auto right = ends.join(1);
  const auto exchange = [](Channel& channel, float mine, float& theirs) {
    channel.send(&mine, sizeof mine, "exchange");
    channel.receive(&theirs, sizeof theirs, "exchange");
  };
  float from_left = 0;
  float from_right = 0;
  std::thread other([&] { exchange(*right, 2.0F, from_left); });
  exchange(*left, 1.0F, from_right);
  other.join();
  EXPECT_EQ(from_left, 1.0F);
  EXPECT_EQ(from_right, 2.0F);
}

TEST(Channel, AbortEndsAReceiver_I7) {
  Ends ends;
  const auto left = ends.join(0);
  const auto right = ends.join(1);
  std::thread waiting([&] {
    float nothing = 0;
    EXPECT_THROW(right->receive(&nothing, sizeof nothing, "never"),
                 FailureError);
  });
  ends.registry.abort_all({Errc::aborted, "test", "enough", ""});
  waiting.join();
}

TEST(Channel, AWrongSizeThrows) {
  Ends ends;
  const auto left = ends.join(0);
  const auto right = ends.join(1);
  const std::array<float, 4> four{};
  left->send(four.data(), sizeof four, "values");
  float one = 0;
  EXPECT_THROW(right->receive(&one, sizeof one, "values"), FailureError);
}

TEST(Channel, ClosingWithMessagesInFlightEndsThePeer_I7) {
  Ends ends;
  auto left = ends.join(0);
  const auto right = ends.join(1);
  float value = 1;
  left->send(&value, sizeof value, "lost");
  left->send(&value, sizeof value, "lost");
  left.reset();
  EXPECT_THROW(
    {
      right->receive(&value, sizeof value, "lost");
      right->receive(&value, sizeof value, "lost");
    },
    FailureError);
}

TEST(Channel, MessagesMayBeInMemoryThatTheHostCannotAddress) {
  Ends ends;
  const BlockMemory& memory = troupe::testing::FarPages::memory();
  std::thread::id entered;
  const auto left = ends.join(
    0, {&memory, [&entered] { entered = std::this_thread::get_id(); }});
  const auto right = ends.join(1, {&memory, {}});
  void* const sent = memory.take(sizeof(float));
  void* const got = memory.take(sizeof(float));
  float value = 4;
  memory.write(&value, sent, sizeof value);
  left->send(sent, sizeof value, "stream");
  right->receive(got, sizeof value, "stream");
  value = 0;
  memory.read(got, &value, sizeof value);
  EXPECT_EQ(value, 4);
  EXPECT_NE(entered, std::thread::id()) << "the channel's thread must enter";
  EXPECT_NE(entered, std::this_thread::get_id());
}

} // namespace
} // namespace troupe::net
