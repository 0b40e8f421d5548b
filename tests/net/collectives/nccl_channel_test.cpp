// Channels between GPUs over a library that does NCCL's work on the host
// (tests/support/nccl/fake_nccl.cpp): which messages are work of streams, which
// stay with the host's groups, and how waits end. No GPU is needed or used.
#include "net/collectives/host_collectives.hpp"
#include "net/collectives/nccl_collectives.hpp"
#include "net/collectives/staged_collectives.hpp"

#include "tests/support/nccl/fake_nccl.hpp"
#include <gmock/gmock.h>

#include <array>
#include <atomic>
#include <cstring>
#include <new>
#include <optional>
#include <thread>

namespace troupe::net {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using troupe::testing::FakeNccl;

/// Memory that the stand-in counts as a GPU's; blocks are never freed.
class FakeGpuPages {
public:
  static const BlockMemory& memory() {
    static constexpr BlockMemory pages{
      [](std::size_t size_bytes) { return instance().take(size_bytes); },
      [](void*) {},
      copy,
      copy,
      [](const void* from, void* to, std::span<const ByteRuns> runs) {
        for (const ByteRuns& part : runs)
          copy_runs(part, from, to);
      },
      [](const void* data) { return instance().has(data); }};
    return pages;
  }

private:
  FakeGpuPages() {
    FakeNccl::instance().count_as_gpu(arena_.data(), arena_.size());
  }
  static FakeGpuPages& instance() {
    static FakeGpuPages pages;
    return pages;
  }
  static void copy(const void* from, void* to, std::size_t size_bytes) {
    std::memcpy(to, from, size_bytes);
  }
  void* take(std::size_t size_bytes) {
    const std::size_t first = used_.fetch_add((size_bytes + 63) / 64 * 64);
    if (first + size_bytes > arena_.size())
      throw std::bad_alloc();
    return arena_.data() + first;
  }
  bool has(const void* data) const {
    const auto* at = static_cast<const std::byte*>(data);
    return at >= arena_.data() && at < arena_.data() + arena_.size();
  }

  alignas(64) std::array<std::byte, 1u << 20> arena_{};
  std::atomic<std::size_t> used_ = 0;
};

/// Numbers in that memory.
class GpuFloats {
public:
  explicit GpuFloats(float value, std::size_t count = 1)
    : bytes_(count * sizeof value),
      data_(static_cast<float*>(FakeGpuPages::memory().take(bytes_))) {
    std::fill_n(data_, count, value);
  }
  float* data() const {
    return data_;
  }
  std::size_t bytes() const {
    return bytes_;
  }

private:
  std::size_t bytes_;
  float* data_;
};

/// One end of a channel, and the stream of its kernels.
struct ChannelEnd {
  std::shared_ptr<Channel> channel;
  CudaStream stream = nullptr;
  GpuFloats any{0}; ///< memory like that of all messages

  /// Sends numbers as stages do; does not wait.
  void send(float value, const char* name, std::size_t count = 1) const {
    const GpuFloats numbers(value, count);
    StreamChannel* const streams = channel->on_streams(any.data());
    if (streams == nullptr)
      return channel->send(numbers.data(), numbers.bytes(), name);
    std::memcpy(streams->next_message(numbers.bytes()), numbers.data(),
                numbers.bytes());
    streams->send(name);
  }
  /// Starts to receive; does not wait where there are streams.
  void start_receive(const GpuFloats& to, const char* name) const {
    if (StreamChannel* const streams = channel->on_streams(any.data()))
      return streams->receive(to.data(), to.bytes(), name);
    channel->receive(to.data(), to.bytes(), name);
  }
  bool is_done() const {
    const CudaStreams& cuda = FakeNccl::library().cuda;
    const bool done = cuda.query_stream(stream) == 0;
    cuda.clear_error();
    return done;
  }
  /// Waits for the kernels, and for nothing else.
  void wait() const {
    while (!is_done())
      std::this_thread::yield();
    channel->check();
  }
  float receive(const char* name, std::size_t count = 1) const {
    const GpuFloats got(-1, count);
    start_receive(got, name);
    wait();
    return got.data()[count - 1];
  }
};

class NcclChannelTest : public ::testing::Test {
protected:
  ChannelEnd join(std::uint32_t end) {
    ChannelEnd made;
    FakeNccl::library().cuda.make_stream(&made.stream, 1);
    const auto host = make_channel_groups(spec("link", end), registry_);
    const auto streams = make_channel_groups(spec("streams", end), registry_);
    const auto staged = [](std::shared_ptr<Collectives> group) {
      return make_staged_collectives(std::move(group), FakeGpuPages::memory());
    };
    made.channel = std::make_shared<Channel>(
      ChannelGroups{staged(host.out), staged(host.in), host.end},
      ChannelDevice{&FakeGpuPages::memory(),
                    {},
                    {over_gpu(streams.out, end, made.stream),
                     over_gpu(streams.in, end, made.stream), streams.end}});
    return made;
  }
  /// Joins both ends, which then meet for the first time, as they do in their
  /// first message.
  void connect() {
    left_ = join(0);
    right_ = join(1);
    std::thread other([&] { right_.channel->on_streams(right_.any.data()); });
    left_.channel->on_streams(left_.any.data());
    other.join();
  }
  /// Returns how many NCCL groups have been made since the test began.
  std::uint64_t groups() const {
    return FakeNccl::instance().groups() - groups_before_;
  }
  template <class Body>
  static std::optional<Failure> failure_of(const Body& body) {
    try {
      body();
    } catch (const FailureError& error) {
      return error.failure();
    }
    return std::nullopt;
  }
  /// Returns why each end fails to compare its calls.
  std::array<std::optional<Failure>, 2> compare() {
    std::array<std::optional<Failure>, 2> found;
    std::thread other(
      [&] { found[1] = failure_of([&] { right_.channel->compare(); }); });
    found[0] = failure_of([&] { left_.channel->compare(); });
    other.join();
    return found;
  }

  std::uint32_t without_nccl_ = 99; ///< end of the channel that has none
  bool shares_a_gpu_ = false;
  std::chrono::milliseconds deadline_ = 20s;
  GroupRegistry registry_;
  ChannelEnd left_;
  ChannelEnd right_;

private:
  GroupSpec spec(const std::string& name, std::uint32_t end) const {
    GroupSpec made;
    made.name = name + std::to_string(without_nccl_);
    made.index = end;
    made.members.resize(2);
    made.progress_deadline = deadline_;
    return made;
  }
  std::shared_ptr<Collectives> over_gpu(std::shared_ptr<Collectives> host,
                                        std::uint32_t end,
                                        CudaStream stream) const {
    auto offers = troupe::testing::nccl_of(2);
    if (without_nccl_ < offers.size())
      offers[without_nccl_].has_nccl = false;
    if (shares_a_gpu_)
      offers[1] = offers[0];
    return make_nccl_collectives(
      {.group = "link",
       .host = make_staged_collectives(std::move(host), FakeGpuPages::memory()),
       .device = 0,
       .progress_deadline = deadline_,
       .offers = offers,
       .thread_stream = [stream] { return stream; }},
      end == without_nccl_ ? FakeNccl::absent() : FakeNccl::library());
  }

  std::uint64_t groups_before_ = FakeNccl::instance().groups();
};

TEST_F(NcclChannelTest, MemoryOfGpusGoesByNcclBothWaysAtOnce) {
  left_ = join(0);
  right_ = join(1);
  const auto exchange = [](const ChannelEnd& end, float mine, float& theirs) {
    end.send(mine, "exchange");
    theirs = end.receive("exchange");
  };
  float from_left = 0;
  float from_right = 0;
  std::thread other([&] { exchange(right_, 2, from_left); });
  exchange(left_, 1, from_right);
  other.join();
  EXPECT_EQ(from_left, 1);
  EXPECT_EQ(from_right, 2);
  EXPECT_EQ(groups(), 2) << "one per direction";
}

TEST_F(NcclChannelTest, TheHostWaitsForNeitherASendNorAReceive) {
  connect();
  left_.send(1, "sent first");
  EXPECT_TRUE(left_.is_done()) << "kernels go on beside a send";
  EXPECT_EQ(right_.receive("sent first"), 1);
  const GpuFloats got(0);
  right_.start_receive(got, "sent last");
  EXPECT_FALSE(right_.is_done()) << "kernels wait for what they read";
  left_.send(2, "sent last");
  right_.wait();
  EXPECT_EQ(got.data()[0], 2);
}

TEST_F(NcclChannelTest, TheStreamWaitsForTheMessageWhoseMemoryItWrites) {
  connect();
  for (std::size_t i = 0; i < kMaxStreamMessages; ++i)
    left_.send(static_cast<float>(i), "stream");
  EXPECT_TRUE(left_.is_done());
  left_.send(9, "stream");
  EXPECT_FALSE(left_.is_done()) << "the first has not arrived";
  EXPECT_EQ(right_.receive("stream"), 0);
  left_.wait();
}

TEST_F(NcclChannelTest, MemoryOfTheHostGoesThroughTheHost) {
  left_ = join(0);
  right_ = join(1);
  const std::int32_t sent = 5;
  std::int32_t got = 0;
  left_.channel->send(&sent, sizeof sent, "token");
  right_.channel->receive(&got, sizeof got, "token");
  EXPECT_EQ(got, 5);
  EXPECT_EQ(groups(), 0);
}

TEST_F(NcclChannelTest, MessagesOfEachMemoryArriveInOrder) {
  connect();
  std::thread sending([&] {
    for (std::int32_t i = 0; i < 20; ++i) {
      left_.send(static_cast<float>(i), "stream");
      left_.channel->send(&i, sizeof i, "token");
    }
  });
  for (std::int32_t i = 0; i < 20; ++i) {
    std::int32_t token = -1;
    right_.channel->receive(&token, sizeof token, "token");
    EXPECT_EQ(token, i);
    EXPECT_EQ(right_.receive("stream"), static_cast<float>(i));
  }
  sending.join();
}

TEST_F(NcclChannelTest, AMessageMayBeLongerThanThoseBefore) {
  connect();
  for (const std::size_t count : {1, 3, 1000, 2}) {
    left_.send(static_cast<float>(count), "longer", count);
    EXPECT_EQ(right_.receive("longer", count), static_cast<float>(count));
  }
}

TEST_F(NcclChannelTest, BothEndsUseTheHostIfOneHasNoNccl) {
  for (without_nccl_ = 0; without_nccl_ < 2; ++without_nccl_) {
    connect();
    EXPECT_EQ(left_.channel->on_streams(left_.any.data()), nullptr);
    left_.send(3, "first");
    EXPECT_EQ(right_.receive("first"), 3);
  }
  EXPECT_EQ(groups(), 0);
}

TEST_F(NcclChannelTest, BothEndsUseTheHostIfTheyShareAGpu) {
  shares_a_gpu_ = true;
  connect();
  left_.send(3, "first");
  EXPECT_EQ(right_.receive("first"), 3);
  EXPECT_EQ(groups(), 0);
}

TEST_F(NcclChannelTest, ASilentPeerIsNamedAtTheDeadline_I7) {
  deadline_ = 1s; // of both ends' meeting too
  connect();
  const auto failure = failure_of([&] { right_.receive("activations"); });
  ASSERT_TRUE(failure) << "nothing was sent";
  EXPECT_EQ(failure->code, Errc::deadline);
  EXPECT_THAT(to_string(*failure),
              AllOf(HasSubstr("'activations'"), HasSubstr("from rank 0")));
}

TEST_F(NcclChannelTest, AMessageThatNobodyReceivesFailsAtTheDeadline_I7) {
  deadline_ = 1s; // of both ends' meeting too
  connect();
  left_.send(1, "activations");
  const auto failure = failure_of([&] {
    while (true) {
      left_.channel->check();
      std::this_thread::yield();
    }
  });
  EXPECT_EQ(failure->code, Errc::deadline);
  EXPECT_THAT(to_string(*failure), HasSubstr("'activations'"));
}

TEST_F(NcclChannelTest, AbortEndsAReceiver_I7) {
  connect();
  std::optional<Failure> failure;
  std::thread waiting(
    [&] { failure = failure_of([&] { right_.receive("never"); }); });
  registry_.abort_all({Errc::aborted, "test", "enough", ""});
  waiting.join();
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->what, "enough");
}

TEST_F(NcclChannelTest, ClosingWithMessagesInFlightEndsThePeer_I7) {
  connect();
  left_.send(1, "lost");
  left_.send(1, "lost");
  left_.channel.reset();
  const auto failure = failure_of([&] {
    right_.receive("lost"); // the stand-in may have what was sent
    right_.receive("lost");
    right_.receive("never sent");
  });
  ASSERT_TRUE(failure);
  EXPECT_NE(failure->code, Errc::deadline) << to_string(*failure);
}

TEST_F(NcclChannelTest, OtherNamesFailWhenTheEndsMeet_I7) {
  connect();
  left_.send(1, "activations");
  right_.receive("gradients");
  for (const auto& failure : compare()) {
    ASSERT_TRUE(failure);
    EXPECT_THAT(to_string(*failure),
                AllOf(HasSubstr("'activations'"), HasSubstr("'gradients'")));
  }
}

TEST_F(NcclChannelTest, EqualMessagesPassWhenTheEndsMeet) {
  connect();
  left_.send(1, "activations");
  right_.send(2, "gradients");
  right_.receive("activations");
  left_.receive("gradients");
  for (const auto& failure : compare())
    EXPECT_FALSE(failure) << to_string(*failure);
}

} // namespace
} // namespace troupe::net
