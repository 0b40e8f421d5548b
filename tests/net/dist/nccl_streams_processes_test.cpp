// Calls on streams between two processes, one of which is killed: sums of a
// group, and messages of a channel.
#include "net/collectives/host_collectives.hpp"
#include "net/collectives/nccl_collectives.hpp"
#include "net/collectives/stream_collectives.hpp"

#include <gtest/gtest.h>

#include "tests/net/dist/forked_peer.hpp"
#include "tests/support/nccl/fake_nccl.hpp"

#include <array>
#include <chrono>
#include <csignal>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

namespace troupe::net {
namespace {

using namespace std::chrono_literals;
using testing::ForkedPeer;
using testing::Talk;
using troupe::testing::FakeNccl;

/// Separates the notice of a death, tens of milliseconds, from the progress
/// deadline of 60 s.
constexpr auto streams_noticed = 5s;

/// Waits for the stream, as the host does for its kernels, and for nothing
/// else.
void wait_for(CudaStream stream) {
  const CudaStreams& cuda = FakeNccl::library().cuda;
  while (cuda.query_stream(stream) != 0) {
    cuda.clear_error();
    std::this_thread::yield();
  }
}

/// A member in a process of its own, which adds up a number on its stream.
class StreamingProcess {
public:
  StreamingProcess(const std::string& name, std::uint32_t rank) {
    FakeNccl::instance().count_as_gpu(
      reinterpret_cast<const std::byte*>(sum_.data()), sizeof sum_);
    FakeNccl::library().cuda.make_stream(&stream_, 1);
    GroupSpec spec;
    spec.name = name;
    spec.index = rank;
    spec.members = {{WorkerId(0), "here"}, {WorkerId(1), "here"}};
    spec.transport = Transport::shared_memory;
    spec.progress_deadline = 60s;
    group_
      = make_nccl_collectives({.group = name,
                               .host = make_host_collectives(spec, registry_),
                               .device = 0,
                               .progress_deadline = 60s,
                               .offers = troupe::testing::nccl_of(2),
                               .thread_stream = [this] { return stream_; }},
                              FakeNccl::library());
  }

  /// Starts to add up, without waiting.
  void start() {
    calls_ = group_->on_streams(sum_.data());
    calls_->join(calls_->all_reduce_sum(sum_.data(), 1, DType::f32, "gradients",
                                        StreamOrder::beside));
  }
  float wait() {
    wait_for(stream_);
    calls_->check();
    return sum_[0];
  }

private:
  std::array<float, 1> sum_{1};
  CudaStream stream_ = nullptr;
  GroupRegistry registry_;
  std::shared_ptr<Collectives> group_;
  StreamCollectives* calls_ = nullptr;
};

TEST(NcclStreamsProcesses, AProcessThatIsKilledEndsCallsOfTheOther_I7) {
  const auto name = "dist/streams/" + std::to_string(::getpid());
  ForkedPeer peer([&](const Talk& talk) {
    StreamingProcess process(name, 1);
    process.start();
    talk.say(process.wait());
    ::raise(SIGKILL);
  });
  StreamingProcess process(name, 0);
  process.start();
  EXPECT_EQ(process.wait(), 2);
  EXPECT_EQ(peer.talk().hear<float>(), 2);
  const auto begin = std::chrono::steady_clock::now();
  try {
    process.start();
    process.wait();
    FAIL() << "the other is dead";
  } catch (const FailureError& error) {
    EXPECT_EQ(error.failure().code, Errc::peer_lost)
      << to_string(error.failure());
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, streams_noticed);
  EXPECT_EQ(peer.wait(), -1);
}

/// An end of a channel in a process of its own.
class SendingProcess {
public:
  SendingProcess(const std::string& name, std::uint32_t end) {
    FakeNccl::instance().count_as_gpu(
      reinterpret_cast<const std::byte*>(number_.data()), sizeof number_);
    FakeNccl::library().cuda.make_stream(&stream_, 1);
    const auto host = make_channel_groups(spec(name, end), registry_);
    const auto streams
      = make_channel_groups(spec(name + "-streams", end), registry_);
    channel_.emplace(
      host, ChannelDevice{
              nullptr, {}, {over_gpu(streams.out), over_gpu(streams.in), end}});
  }
  void send(float value) {
    StreamChannel& streams = *channel_->on_streams(number_.data());
    auto* const message = static_cast<float*>(streams.next_message(4));
    *message = value;
    streams.send("activations");
  }
  float receive() {
    channel_->on_streams(number_.data())
      ->receive(number_.data(), 4, "activations");
    wait_for(stream_);
    channel_->check();
    return number_[0];
  }

private:
  static GroupSpec spec(const std::string& name, std::uint32_t end) {
    GroupSpec made;
    made.name = name;
    made.index = end;
    made.members = {{WorkerId(0), "here"}, {WorkerId(1), "here"}};
    made.transport = Transport::shared_memory;
    made.progress_deadline = 60s;
    return made;
  }
  std::shared_ptr<Collectives> over_gpu(std::shared_ptr<Collectives> host) {
    return make_nccl_collectives({.group = "link",
                                  .host = std::move(host),
                                  .device = 0,
                                  .progress_deadline = 60s,
                                  .offers = troupe::testing::nccl_of(2),
                                  .thread_stream = [this] { return stream_; }},
                                 FakeNccl::library());
  }

  std::array<float, 1> number_{};
  CudaStream stream_ = nullptr;
  GroupRegistry registry_;
  std::optional<Channel> channel_;
};

TEST(NcclStreamsProcesses, AStageThatIsKilledEndsTheReceiverOfItsStream_I7) {
  const auto name = "dist/stages/" + std::to_string(::getpid());
  ForkedPeer peer([&](const Talk& talk) {
    SendingProcess process(name, 1);
    process.send(2);
    talk.say(process.receive());
    talk.hear<char>(); // its own message may still be on its way
    ::raise(SIGKILL);
  });
  SendingProcess process(name, 0);
  process.send(1);
  EXPECT_EQ(process.receive(), 2);
  EXPECT_EQ(peer.talk().hear<float>(), 1);
  peer.talk().say('k');
  const auto begin = std::chrono::steady_clock::now();
  try {
    process.receive();
    FAIL() << "the other is dead";
  } catch (const FailureError& error) {
    EXPECT_EQ(error.failure().code, Errc::peer_lost)
      << to_string(error.failure());
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, streams_noticed);
  EXPECT_EQ(peer.wait(), -1);
}

} // namespace
} // namespace troupe::net
