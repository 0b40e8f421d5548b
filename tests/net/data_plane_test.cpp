#include "net/data_plane.hpp"
#include "net/wire.hpp"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <future>
#include <numeric>

namespace troupe::net {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

const std::vector<std::string> kPlaneKeys{"tokens", "scores"};

DataPlaneOptions plane_options(std::uint32_t self,
                               std::string token = "secret") {
  DataPlaneOptions options;
  options.self = WorkerId(self);
  options.token = std::move(token);
  options.progress_deadline = 20s;
  return options;
}

/// Sample s: tokens s, s+1, .. (s of them); one score s / 2.
Rows plane_rows(std::uint32_t first, std::uint32_t count) {
  std::vector<SampleId> samples;
  std::vector<std::uint32_t> lengths, ones(count, 1);
  std::vector<std::int32_t> tokens;
  std::vector<float> scores;
  for (std::uint32_t s = first; s < first + count; ++s) {
    samples.emplace_back(s);
    lengths.push_back(s);
    scores.push_back(static_cast<float>(s) / 2);
    for (std::uint32_t i = 0; i < s; ++i)
      tokens.push_back(static_cast<std::int32_t>(s + i));
  }
  return Rows(samples,
              {make_column("tokens", DType::i32, lengths, tokens.data()),
               make_column("scores", DType::f32, ones, scores.data())});
}

RowsResult pull(DataPlane& plane, std::uint32_t from, StepId step,
                std::vector<SampleId> samples) {
  std::promise<RowsResult> promise;
  plane.pull_rows(
    WorkerId(from), step, kPlaneKeys, std::move(samples),
    [&](RowsResult result) { promise.set_value(std::move(result)); });
  return promise.get_future().get();
}

std::optional<Failure> pull_bytes(DataPlane& plane, std::uint32_t from,
                                  std::uint64_t id, std::uint64_t offset,
                                  std::span<std::byte> into) {
  std::promise<std::optional<Failure>> promise;
  plane.pull_memory(WorkerId(from), id, offset, into,
                    [&](std::optional<Failure> failure) {
                      promise.set_value(std::move(failure));
                    });
  return promise.get_future().get();
}

class TwoPlanes : public ::testing::Test {
protected:
  TwoPlanes() {
    holder.serve_rows(stash);
    puller.set_peer(WorkerId(1), "127.0.0.1", holder.port());
  }
  Stash stash;
  DataPlane holder{plane_options(1)};
  DataPlane puller{plane_options(0)};
};

TEST_F(TwoPlanes, RowsArriveInTheAskedOrder) {
  stash.put(StepId(3), plane_rows(0, 5));
  stash.put(StepId(3), plane_rows(5, 5));
  const std::vector<SampleId> asked{SampleId(7), SampleId(0), SampleId(4),
                                    SampleId(5)};
  const RowsResult result = pull(puller, 1, StepId(3), asked);
  ASSERT_TRUE(std::holds_alternative<Rows>(result));
  const Rows& rows = std::get<Rows>(result);
  validate(rows);
  const Rows expected = stash.get(StepId(3), kPlaneKeys, asked);
  for (const std::string& key : kPlaneKeys) {
    EXPECT_EQ(rows.at(key).lengths, expected.at(key).lengths);
    ASSERT_EQ(rows.at(key).data.size_bytes(),
              expected.at(key).data.size_bytes());
    EXPECT_EQ(std::memcmp(rows.at(key).data.data(),
                          expected.at(key).data.data(),
                          rows.at(key).data.size_bytes()),
              0);
  }
  EXPECT_GT(puller.counters().bytes_received, 0u);
}

TEST_F(TwoPlanes, RowsOfSelfStayInside) {
  stash.put(StepId(0), plane_rows(3, 1));
  const RowsResult result = pull(holder, 1, StepId(0), {SampleId(3)});
  EXPECT_EQ(
    std::get<Rows>(result).at("tokens").data.data(),
    stash.get(StepId(0), kPlaneKeys, {{SampleId(3)}}).at("tokens").data.data());
}

TEST_F(TwoPlanes, AMissingRowIsAFailureThatNamesIt) {
  stash.put(StepId(0), plane_rows(0, 2));
  const RowsResult result = pull(puller, 1, StepId(0), {SampleId(9)});
  ASSERT_TRUE(std::holds_alternative<Failure>(result));
  EXPECT_THAT(std::get<Failure>(result).what, HasSubstr("sample 9"));
  // and the connection still serves
  EXPECT_TRUE(
    std::holds_alternative<Rows>(pull(puller, 1, StepId(0), {SampleId(1)})));
}

TEST_F(TwoPlanes, MemoryComesInPiecesByOffset) {
  std::vector<std::uint32_t> weights(6 << 20); // 24 MiB: several pieces
  std::iota(weights.begin(), weights.end(), 1u);
  holder.export_memory(5, weights.data(), weights.size() * 4);
  std::vector<std::uint32_t> got(weights.size() - 1);
  EXPECT_FALSE(
    pull_bytes(puller, 1, 5, 4, std::as_writable_bytes(std::span(got))));
  EXPECT_TRUE(std::equal(got.begin(), got.end(), weights.begin() + 1));
  auto failure
    = pull_bytes(puller, 1, 5, 8, std::as_writable_bytes(std::span(got)));
  ASSERT_TRUE(failure);
  EXPECT_THAT(failure->what, HasSubstr("memory 5"));
  holder.withdraw(5);
  EXPECT_TRUE(
    pull_bytes(puller, 1, 5, 0, std::as_writable_bytes(std::span(got))));
}

TEST_F(TwoPlanes, ExportsAreKeptAliveUntilWithdrawn) {
  auto memory = std::make_shared<std::vector<std::byte>>(64);
  std::weak_ptr<std::vector<std::byte>> watch = memory;
  holder.export_memory(1, memory->data(), 64, memory);
  memory.reset();
  EXPECT_FALSE(watch.expired());
  holder.withdraw(1);
  EXPECT_TRUE(watch.expired());
}

TEST_F(TwoPlanes, ManyPullsAtOnceAllEnd) {
  stash.put(StepId(0), plane_rows(0, 50));
  std::atomic<int> good = 0, ended = 0;
  std::promise<void> all;
  for (int i = 0; i < 200; ++i)
    puller.pull_rows(WorkerId(1), StepId(0), kPlaneKeys,
                     {SampleId(static_cast<unsigned>(i % 50))},
                     [&](RowsResult result) {
                       good += std::holds_alternative<Rows>(result);
                       if (++ended == 200)
                         all.set_value();
                     });
  all.get_future().wait();
  EXPECT_EQ(good, 200);
}

TEST_F(TwoPlanes, AnOlderIncarnationIsRefused) {
  stash.put(StepId(0), plane_rows(0, 2));
  holder.begin(Incarnation(1));
  const RowsResult result = pull(puller, 1, StepId(0), {SampleId(1)});
  ASSERT_TRUE(std::holds_alternative<Failure>(result));
  EXPECT_EQ(std::get<Failure>(result).code, Errc::stale);
  puller.begin(Incarnation(1));
  EXPECT_TRUE(
    std::holds_alternative<Rows>(pull(puller, 1, StepId(0), {SampleId(1)})));
}

TEST_F(TwoPlanes, AbortLastsUntilTheNextIncarnation) {
  stash.put(StepId(0), plane_rows(0, 2));
  puller.abort({Errc::aborted, "master", "stop", "worker 7 died"});
  EXPECT_EQ(std::get<Failure>(pull(puller, 1, StepId(0), {SampleId(1)})).cause,
            "worker 7 died");
  puller.begin(Incarnation(0));
  EXPECT_TRUE(
    std::holds_alternative<Rows>(pull(puller, 1, StepId(0), {SampleId(1)})));
}

TEST_F(TwoPlanes, AStoppedPeerFailsThePull) {
  stash.put(StepId(0), plane_rows(0, 2));
  ASSERT_TRUE(
    std::holds_alternative<Rows>(pull(puller, 1, StepId(0), {SampleId(1)})));
  holder.stop();
  const RowsResult result = pull(puller, 1, StepId(0), {SampleId(1)});
  EXPECT_EQ(std::get<Failure>(result).code, Errc::peer_lost);
  puller.stop();
  EXPECT_EQ(std::get<Failure>(pull(puller, 1, StepId(0), {SampleId(1)})).code,
            Errc::aborted);
}

TEST_F(TwoPlanes, AWrongTokenIsRefused) {
  DataPlane stranger(plane_options(2, "guess"));
  stranger.set_peer(WorkerId(1), "127.0.0.1", holder.port());
  const RowsResult result = pull(stranger, 1, StepId(0), {SampleId(1)});
  ASSERT_TRUE(std::holds_alternative<Failure>(result));
  EXPECT_EQ(std::get<Failure>(result).code, Errc::refused);
  EXPECT_THAT(std::get<Failure>(result).what, HasSubstr("wrong token"));
}

TEST(DataPlane, SaysWhenItsPortIsTaken) {
  DataPlane first(plane_options(0));
  DataPlaneOptions options = plane_options(1);
  options.port = first.port();
  EXPECT_THROW(DataPlane{options}, FailureError);
}

TEST(DataPlane, APeerThatIsNotThereFailsThePull) {
  DataPlane plane(plane_options(0));
  EXPECT_EQ(std::get<Failure>(pull(plane, 1, StepId(0), {})).code,
            Errc::refused)
    << "no address";
  std::uint16_t free_port = 0;
  { free_port = DataPlane(plane_options(1)).port(); }
  plane.set_peer(WorkerId(1), "127.0.0.1", free_port);
  EXPECT_EQ(std::get<Failure>(pull(plane, 1, StepId(0), {})).code,
            Errc::peer_lost);
}

/// A plain socket that speaks to a plane as it likes.
class RawPeer {
public:
  explicit RawPeer(std::uint16_t port)
    : descriptor_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(descriptor_, reinterpret_cast<sockaddr*>(&address),
                           sizeof(address))
                 == 0;
  }
  ~RawPeer() {
    ::close(descriptor_);
  }
  void send(const std::string& bytes) {
    EXPECT_TRUE(connected_);
    ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  /// Bytes that came until the plane closed the connection.
  std::size_t read_to_end() {
    char block[4096];
    std::size_t sum = 0;
    for (ssize_t n; (n = ::recv(descriptor_, block, sizeof(block), 0)) > 0;)
      sum += static_cast<std::size_t>(n);
    return sum;
  }

private:
  int descriptor_;
  bool connected_ = false;
};

TEST_F(TwoPlanes, HostileFramesCloseTheirConnectionOnly) {
  stash.put(StepId(0), plane_rows(0, 2));
  const std::string hello
    = encode_frame(Hello{kWireProtocol, "secret", WorkerId(9), "", 0}, 0);
  std::string huge_header = encode_frame(Welcome{}, 0);
  const std::uint32_t huge = UINT32_MAX;
  std::memcpy(huge_header.data() + 4, &huge, 4);
  const std::string cases[] = {
    "GET / HTTP/1.1\r\nHost: here\r\n\r\n",
    huge_header,
    encode_frame(Welcome{}, std::uint64_t{1} << 60),
    encode_frame(PullRows{1, {}, {}, {"tokens"}, {}}, 0), // before hello
    hello + huge_header,
    hello + encode_frame(PullRows{1, {}, {}, {"tokens"}, {}}, 10),
    hello + encode_frame(MemoryAnswer{1}, 0),
    hello + hello,
    encode_frame(Hello{99, "secret", WorkerId(9), "", 0}, 0),
    encode_frame(Hello{kWireProtocol, "secret", WorkerId(9), "group", 0}, 0),
  };
  for (const std::string& bytes : cases) {
    RawPeer peer(holder.port());
    peer.send(bytes);
    EXPECT_LT(peer.read_to_end(), 200u);
  }
  EXPECT_TRUE(
    std::holds_alternative<Rows>(pull(puller, 1, StepId(0), {SampleId(1)})));
}

} // namespace
} // namespace troupe::net
