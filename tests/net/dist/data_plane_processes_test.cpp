// Pulls from a holder in another process that dies or freezes.
#include "net/data_plane/data_plane.hpp"

#include "tests/net/dist/forked_peer.hpp"
#include <gmock/gmock.h>

#include <future>
#include <vector>

namespace troupe::net {
namespace {

using namespace std::chrono_literals;
using testing::ForkedPeer;
using testing::Talk;

constexpr std::size_t kExportBytes = 64 << 20;
/// Limit of "at once", far from the deadline of 60 s (see
/// collectives_processes_test).
constexpr auto kPullNoticed = 5s;

DataPlaneOptions pull_options(std::uint32_t self,
                              std::chrono::milliseconds deadline) {
  DataPlaneOptions options;
  options.self = WorkerId(self);
  options.token = "secret";
  options.progress_deadline = deadline;
  return options;
}

/// Serves memory 1 and a row of step 0 until it is killed.
void hold(const Talk& talk) {
  Stash stash;
  std::vector<std::byte> memory(kExportBytes, std::byte{7});
  DataPlane plane(pull_options(1, 60s));
  const std::uint32_t lengths = kExportBytes / 4;
  stash.put(StepId(0),
            Rows({SampleId(0)}, {make_column("tokens", DType::i32, {lengths},
                                             memory.data())}));
  plane.serve_rows(stash);
  plane.export_memory(1, memory.data(), memory.size());
  talk.say(plane.port());
  talk.hear<char>(); // never arrives
}

struct PullEnd {
  Failure failure;
  std::chrono::steady_clock::duration after{};
};

/// Pulls until the pull fails because the peer got `signal_number` meanwhile.
PullEnd signal_while_pulling(int signal_number,
                             std::chrono::milliseconds deadline) {
  ForkedPeer peer(hold);
  DataPlane plane(pull_options(0, deadline));
  plane.set_peer(WorkerId(1), "127.0.0.1", peer.talk().hear<std::uint16_t>());
  std::vector<std::byte> into(kExportBytes);
  for (int round = 0;; ++round) {
    std::promise<std::optional<Failure>> promise;
    auto ended = promise.get_future();
    plane.pull_memory(WorkerId(1), 1, 0, into,
                      [&](std::optional<Failure> failure) {
                        promise.set_value(std::move(failure));
                      });
    const auto sent = std::chrono::steady_clock::now();
    if (round == 3)
      peer.signal(signal_number);
    const std::optional<Failure> failure = ended.get();
    if (failure)
      return {*failure, std::chrono::steady_clock::now() - sent};
    EXPECT_EQ(into.back(), std::byte{7});
  }
}

TEST(DataPlaneProcesses, AKilledHolderFailsThePullAtOnce_I7) {
  const PullEnd end = signal_while_pulling(SIGKILL, 60s);
  EXPECT_EQ(end.failure.code, Errc::peer_lost) << to_string(end.failure);
  EXPECT_LT(end.after, kPullNoticed);
}

TEST(DataPlaneProcesses, AFrozenHolderFailsThePullAtTheProgressDeadline_I7) {
  const PullEnd end = signal_while_pulling(SIGSTOP, 1s);
  EXPECT_EQ(end.failure.code, Errc::deadline) << to_string(end.failure);
}

TEST(DataPlaneProcesses, AbortEndsAPullFromAFrozenHolder) {
  ForkedPeer peer(hold);
  DataPlane plane(pull_options(0, 60s));
  plane.set_peer(WorkerId(1), "127.0.0.1", peer.talk().hear<std::uint16_t>());
  peer.signal(SIGSTOP);
  std::promise<RowsResult> promise;
  plane.pull_rows(
    WorkerId(1), StepId(0), {"tokens"}, {SampleId(0)},
    [&](RowsResult result) { promise.set_value(std::move(result)); });
  plane.abort({Errc::peer_lost, "worker 1", "dead", ""});
  const RowsResult result = promise.get_future().get();
  EXPECT_EQ(std::get<Failure>(result).what, "dead");
}

TEST(DataPlaneProcesses, RowsArriveIntact) {
  ForkedPeer peer(hold);
  DataPlane plane(pull_options(0, 60s));
  plane.set_peer(WorkerId(1), "127.0.0.1", peer.talk().hear<std::uint16_t>());
  for (int round = 0; round < 3; ++round) {
    std::promise<RowsResult> promise;
    plane.pull_rows(
      WorkerId(1), StepId(0), {"tokens"}, {SampleId(0)},
      [&](RowsResult result) { promise.set_value(std::move(result)); });
    const RowsResult result = promise.get_future().get();
    ASSERT_TRUE(std::holds_alternative<Rows>(result));
    const auto tokens = std::get<Rows>(result).at("tokens").as<std::int32_t>();
    EXPECT_EQ(tokens.size(), kExportBytes / 4);
    EXPECT_EQ(tokens.back(), 0x07070707);
  }
}

} // namespace
} // namespace troupe::net
