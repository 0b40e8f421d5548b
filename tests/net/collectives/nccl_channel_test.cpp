// Channels between GPUs over a library that does NCCL's work on the host
// (tests/support/nccl/fake_nccl.cpp): which messages use NCCL, which stay with
// the host's groups, and how waits end. No GPU is needed or used.
#include "net/collectives/host_collectives.hpp"
#include "net/collectives/nccl_collectives.hpp"
#include "net/collectives/staged_collectives.hpp"

#include "tests/support/nccl/fake_nccl.hpp"
#include <gmock/gmock.h>

#include <array>
#include <atomic>
#include <cstring>
#include <new>
#include <thread>

namespace troupe::net {
namespace {

using namespace std::chrono_literals;
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

/// A number in that memory.
class GpuFloat {
public:
  explicit GpuFloat(float value)
    : data_(static_cast<float*>(FakeGpuPages::memory().take(sizeof value))) {
    *data_ = value;
  }
  void send(Channel& to, const char* name) const {
    to.send(data_, sizeof *data_, name);
  }
  float receive(Channel& from, const char* name) const {
    from.receive(data_, sizeof *data_, name);
    return *data_;
  }
  void set(float value) const {
    *data_ = value;
  }

private:
  float* data_;
};

class NcclChannelTest : public ::testing::Test {
protected:
  std::shared_ptr<Channel> join(std::uint32_t end) {
    GroupSpec spec;
    spec.name = "link" + std::to_string(without_nccl_);
    spec.index = end;
    spec.members.resize(2);
    spec.progress_deadline = deadline_;
    const auto host = make_channel_groups(spec, registry_);
    return std::make_shared<Channel>(
      ChannelGroups{over_gpu(host.out, end), over_gpu(host.in, end)},
      ChannelDevice{&FakeGpuPages::memory(), {}});
  }
  /// Sends a number of a GPU from `left` to `right`, which makes the group.
  static void expect_number(Channel& left, Channel& right) {
    GpuFloat(3).send(left, "first");
    EXPECT_EQ(GpuFloat(0).receive(right, "first"), 3);
  }
  /// Returns how many NCCL groups have been made since the test began.
  std::uint64_t groups() const {
    return FakeNccl::instance().groups() - groups_before_;
  }

  std::uint32_t without_nccl_ = 99; ///< end of the channel that has none
  bool shares_a_gpu_ = false;
  std::chrono::milliseconds deadline_ = 20s;
  GroupRegistry registry_;

private:
  std::shared_ptr<Collectives> over_gpu(std::shared_ptr<Collectives> host,
                                        std::uint32_t end) const {
    const auto gpu = shares_a_gpu_ ? 7 : static_cast<std::int32_t>(end);
    return make_nccl_collectives(
      {.host = make_staged_collectives(std::move(host), FakeGpuPages::memory()),
       .device = 0,
       .progress_deadline = deadline_,
       .gpu = {gpu, 0, 0, 0}},
      end == without_nccl_ ? FakeNccl::absent() : FakeNccl::library());
  }

  std::uint64_t groups_before_ = FakeNccl::instance().groups();
};

TEST_F(NcclChannelTest, MemoryOfGpusGoesByNcclBothWaysAtOnce) {
  const auto left = join(0);
  const auto right = join(1);
  float from_left = 0;
  std::thread other([&] {
    GpuFloat(2).send(*right, "exchange");
    from_left = GpuFloat(0).receive(*right, "exchange");
  });
  GpuFloat(1).send(*left, "exchange");
  const float from_right = GpuFloat(0).receive(*left, "exchange");
  other.join();
  EXPECT_EQ(from_left, 1);
  EXPECT_EQ(from_right, 2);
  EXPECT_EQ(groups(), 2) << "one per direction";
}

TEST_F(NcclChannelTest, MemoryOfTheHostGoesThroughTheHost) {
  const auto left = join(0);
  const auto right = join(1);
  const std::int32_t sent = 5;
  std::int32_t got = 0;
  left->send(&sent, sizeof sent, "token");
  right->receive(&got, sizeof got, "token");
  EXPECT_EQ(got, 5);
  EXPECT_EQ(groups(), 0);
}

TEST_F(NcclChannelTest, MessagesOfBothMemoriesArriveInOrder) {
  const auto left = join(0);
  const auto right = join(1);
  const GpuFloat stream(0);
  for (std::int32_t i = 0; i < 20; ++i) { // before any receive
    stream.set(static_cast<float>(i));
    stream.send(*left, "stream");
    left->send(&i, sizeof i, "token");
  }
  stream.set(-1); // what was sent is a copy
  for (std::int32_t i = 0; i < 20; ++i) {
    EXPECT_EQ(GpuFloat(-2).receive(*right, "stream"), static_cast<float>(i));
    std::int32_t token = -1;
    right->receive(&token, sizeof token, "token");
    EXPECT_EQ(token, i);
  }
}

TEST_F(NcclChannelTest, AMessageMayBeLongerThanThoseBefore) {
  const auto left = join(0);
  const auto right = join(1);
  expect_number(*left, *right);
  constexpr std::size_t bytes = 4096;
  void* const sent = FakeGpuPages::memory().take(bytes);
  void* const got = FakeGpuPages::memory().take(bytes);
  std::memset(sent, 7, bytes);
  left->send(sent, bytes, "longer");
  right->receive(got, bytes, "longer");
  EXPECT_EQ(std::memcmp(sent, got, bytes), 0);
}

TEST_F(NcclChannelTest, BothEndsUseTheHostIfOneHasNoNccl) {
  for (without_nccl_ = 0; without_nccl_ < 2; ++without_nccl_) {
    const auto left = join(0);
    const auto right = join(1);
    expect_number(*left, *right);
  }
  EXPECT_EQ(groups(), 0);
}

TEST_F(NcclChannelTest, BothEndsUseTheHostIfTheyShareAGpu) {
  shares_a_gpu_ = true;
  const auto left = join(0);
  const auto right = join(1);
  expect_number(*left, *right);
  EXPECT_EQ(groups(), 0);
}

TEST_F(NcclChannelTest, ASilentPeerIsNamedAtTheDeadline_I7) {
  deadline_ = 500ms;
  const auto left = join(0);
  const auto right = join(1);
  expect_number(*left, *right);
  try {
    GpuFloat(0).receive(*right, "activations");
    FAIL() << "nothing was sent";
  } catch (const FailureError& error) {
    EXPECT_EQ(error.failure().code, Errc::deadline);
    EXPECT_THAT(to_string(error.failure()), HasSubstr("activations"));
    EXPECT_THAT(to_string(error.failure()), HasSubstr("rank 0"));
  }
}

TEST_F(NcclChannelTest, AbortEndsAReceiver_I7) {
  const auto left = join(0);
  const auto right = join(1);
  expect_number(*left, *right);
  std::thread waiting(
    [&] { EXPECT_THROW(GpuFloat(0).receive(*right, "never"), FailureError); });
  registry_.abort_all({Errc::aborted, "test", "enough", ""});
  waiting.join();
}

TEST_F(NcclChannelTest, ClosingWithMessagesInFlightEndsThePeer_I7) {
  auto left = join(0);
  const auto right = join(1);
  expect_number(*left, *right);
  GpuFloat(1).send(*left, "lost");
  GpuFloat(1).send(*left, "lost");
  left.reset();
  EXPECT_THROW(
    {
      GpuFloat(0).receive(*right, "lost");
      GpuFloat(0).receive(*right, "lost");
    },
    FailureError);
}

} // namespace
} // namespace troupe::net
