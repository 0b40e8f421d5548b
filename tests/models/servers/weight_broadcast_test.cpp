// Weights by NCCL to ranks of this process, over a stand-in for NCCL
// (tests/support/nccl): what they get, and how waits end.
#include "config/base/base64.hpp"
#include "config/base/error.hpp"
#include "models/servers/weight_broadcast.hpp"

#include "tests/support/nccl/fake_nccl.hpp"
#include <gmock/gmock.h>

#include <cstring>
#include <functional>
#include <latch>
#include <thread>
#include <utility>
#include <vector>

namespace troupe::models {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using troupe::testing::FakeNccl;

/// A rank as a server has it.
class ServerRank {
public:
  ServerRank(const std::string& id, int size, int rank) {
    net::NcclId raw{};
    const auto bytes = from_base64(id).value();
    std::memcpy(raw.bytes, bytes.data(), sizeof raw.bytes);
    lib_.cuda.make_stream(&stream_, 1);
    EXPECT_EQ(lib_.groups.init_rank(&communicator_, size, raw, rank), 0);
    float element = 1;
    lib_.all_reduce(&element, &element, 1, f32, 0, communicator_, stream_);
    wait();
  }
  ~ServerRank() {
    leave();
  }
  ServerRank(const ServerRank&) = delete;
  ServerRank& operator=(const ServerRank&) = delete;

  std::vector<float> receive(std::size_t count) {
    std::vector<float> values(count);
    lib_.broadcast(values.data(), values.data(), count, f32, 0, communicator_,
                   stream_);
    wait();
    return values;
  }
  void leave() {
    if (communicator_ != nullptr)
      lib_.groups.abort(std::exchange(communicator_, nullptr));
  }

private:
  static constexpr int f32 = 7;

  void wait() const {
    while (lib_.cuda.query_stream(stream_) != 0)
      std::this_thread::yield();
  }

  const net::NcclLibrary& lib_ = FakeNccl::library();
  net::NcclCommunicator communicator_ = nullptr;
  net::CudaStream stream_ = nullptr;
};

class WeightBroadcastTest : public ::testing::Test {
protected:
  static WeightBroadcastSpec spec(std::chrono::milliseconds deadline = 20s) {
    return {.who = "weights",
            .progress_deadline = deadline,
            .library = &FakeNccl::library()};
  }
  static Failure failure_of(const std::function<void()>& work) {
    try {
      work();
    } catch (const FailureError& error) {
      return error.failure();
    }
    ADD_FAILURE() << "nothing was thrown";
    return {};
  }
  void send(WeightBroadcast& weights) const {
    weights.send(std::as_bytes(std::span(file_)), tensors_);
  }
  /// Returns why an update fails whose only other rank takes one tensor of two,
  /// and then does this.
  Failure
  failure_after_one(WeightBroadcast& weights,
                    const std::function<void(ServerRank&)>& then) const {
    std::latch has_failed(1);
    std::jthread takes([&] {
      ServerRank server(weights.id(), 2, 1);
      EXPECT_THAT(server.receive(2), ElementsAre(1, 2));
      then(server);
      has_failed.wait();
    });
    weights.join(2);
    auto failure = failure_of([&] { send(weights); });
    has_failed.count_down();
    return failure;
  }

private:
  const std::vector<float> file_{0, 1, 2, 3, 4, 5, 6};
  const std::vector<SentTensor> tensors_{{"a", "F32", {2}, 4, ""},
                                         {"b", "F32", {2, 2}, 12, ""}};
};

TEST_F(WeightBroadcastTest, EachRankGetsEachTensorInTheirOrder) {
  WeightBroadcast weights(spec());
  std::latch has_sent(1); // a rank that leaves earlier ends the group
  std::vector<std::jthread> ranks;
  for (const int rank : {1, 2})
    ranks.emplace_back([&, rank] {
      ServerRank server(weights.id(), 3, rank);
      for (int update = 0; update < 2; ++update) {
        EXPECT_THAT(server.receive(2), ElementsAre(1, 2));
        EXPECT_THAT(server.receive(4), ElementsAre(3, 4, 5, 6));
      }
      has_sent.wait();
    });
  weights.join(3);
  for (int update = 0; update < 2; ++update)
    send(weights);
  has_sent.count_down();
  EXPECT_FALSE(weights.failure());
}

TEST_F(WeightBroadcastTest, JoiningEndsAtTheDeadlineIfNobodyComes_I7) {
  WeightBroadcast weights(spec(100ms));
  const auto failure = failure_of([&] { weights.join(2); });
  EXPECT_EQ(failure.code, Errc::deadline);
  EXPECT_THAT(failure.what, HasSubstr("joining 2 ranks: no end within 100 ms"));
}

TEST_F(WeightBroadcastTest, ATensorThatIsNotTakenIsNamedAtTheDeadline_I7) {
  WeightBroadcast weights(spec(1s)); // in which the first one is taken
  const auto failure = failure_after_one(weights, [](ServerRank&) {});
  EXPECT_EQ(failure.code, Errc::deadline);
  EXPECT_EQ(failure.who, "weights");
  EXPECT_EQ(failure.what, "NCCL: b: no end within 1000 ms");
}

TEST_F(WeightBroadcastTest, ARankThatLeavesEndsTheUpdate_I7) {
  WeightBroadcast weights(spec());
  const auto failure
    = failure_after_one(weights, [](ServerRank& server) { server.leave(); });
  EXPECT_EQ(failure.code, Errc::peer_lost);
  EXPECT_THAT(failure.what, HasSubstr("remote process exited"));
}

TEST_F(WeightBroadcastTest, AnAbortOfAnotherThreadEndsAWaitWithItsCause_I7) {
  WeightBroadcast weights(spec());
  std::jthread aborts([&] {
    weights.abort({.code = Errc::peer_lost,
                   .who = "server",
                   .what = "it died",
                   .cause = ""});
  });
  const auto failure = failure_of([&] { weights.join(2); });
  EXPECT_EQ(failure.who, "server");
  EXPECT_EQ(weights.failure()->what, "it died");
}

TEST_F(WeightBroadcastTest, AHostWithoutNcclIsAFailureThatSaysWhatIsMissing) {
  auto absent = spec();
  absent.library = &FakeNccl::absent();
  const auto failure = failure_of([&] { WeightBroadcast weights(absent); });
  EXPECT_EQ(failure.code, Errc::io);
  EXPECT_THAT(failure.what, HasSubstr("libnone.so"));
}

} // namespace
} // namespace troupe::models
