#include "net/base/wire.hpp"
#include "net/data_plane/data_plane.hpp"

#include "tests/support/net/test_tls.hpp"
#include "tests/support/net/wire_tap.hpp"
#include <gmock/gmock.h>

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

/// Sample s: s tokens s, s+1, ...; one score s / 2.
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

/// Two planes, over TLS (parameter true) and unencrypted.
class TwoPlanes : public ::testing::TestWithParam<bool> {
protected:
  TwoPlanes() {
    holder.serve_rows(stash);
    puller.set_peer(WorkerId(1), "127.0.0.1", holder.port());
  }
  DataPlaneOptions options(std::uint32_t self, std::string token = "secret") {
    DataPlaneOptions made = plane_options(self, std::move(token));
    made.tls = tls;
    return made;
  }
  std::shared_ptr<const TlsContext> tls
    = GetParam() ? troupe::test::new_run_tls() : nullptr;
  Stash stash;
  DataPlane holder{options(1)};
  DataPlane puller{options(0)};
};

INSTANTIATE_TEST_SUITE_P(, TwoPlanes, ::testing::Bool(), [](const auto& one) {
  return one.param ? "OverTls" : "InClear";
});

TEST_P(TwoPlanes, RowsArriveInTheRequestedOrder) {
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

TEST_P(TwoPlanes, LocalRowsUseNoSocket) {
  stash.put(StepId(0), plane_rows(3, 1));
  const RowsResult result = pull(holder, 1, StepId(0), {SampleId(3)});
  EXPECT_EQ(
    std::get<Rows>(result).at("tokens").data.data(),
    stash.get(StepId(0), kPlaneKeys, {{SampleId(3)}}).at("tokens").data.data());
}

TEST_P(TwoPlanes, AMissingRowIsNamed) {
  stash.put(StepId(0), plane_rows(0, 2));
  const RowsResult result = pull(puller, 1, StepId(0), {SampleId(9)});
  ASSERT_TRUE(std::holds_alternative<Failure>(result));
  EXPECT_THAT(std::get<Failure>(result).what, HasSubstr("sample 9"));
  // and the connection still works
  EXPECT_TRUE(
    std::holds_alternative<Rows>(pull(puller, 1, StepId(0), {SampleId(1)})));
}

TEST_P(TwoPlanes, MemoryIsPulledInPiecesByOffset) {
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

TEST_P(TwoPlanes, ColumnsOfAMatrixArePulledAtOnce) {
  constexpr std::uint64_t rows = 40'000; // more than one request may name
  std::vector<std::uint32_t> weights(rows * 32), got(rows * 16 + 16), expected;
  std::iota(weights.begin(), weights.end(), 1u);
  for (std::size_t i = 0; i < weights.size(); ++i)
    if (i % 32 >= 16)
      expected.push_back(weights[i]);
  expected.resize(got.size());
  holder.export_memory(5, weights.data(), weights.size() * 4);
  const auto pull_right_half = [&](std::uint64_t runs) {
    const ByteRuns half{64, 0, 64, runs, 128, 64};
    MemoryPull pull(WorkerId(1), 5, std::span(&half, 1));
    std::promise<std::optional<Failure>> done;
    puller.pull_memory(
      pull, reinterpret_cast<std::byte*>(got.data()),
      [&](std::optional<Failure> failure) { done.set_value(failure); });
    return done.get_future().get();
  };
  EXPECT_FALSE(pull_right_half(rows));
  EXPECT_TRUE(got == expected);
  EXPECT_EQ(puller.counters().pulls, 1u);
  EXPECT_TRUE(pull_right_half(rows + 1)) << "a row past the end";
  holder.withdraw(5);
}

TEST_P(TwoPlanes, ExportsLiveUntilTheyAreWithdrawn) {
  auto memory = std::make_shared<std::vector<std::byte>>(64);
  std::weak_ptr<std::vector<std::byte>> watch = memory;
  holder.export_memory(1, memory->data(), 64, memory);
  memory.reset();
  EXPECT_FALSE(watch.expired());
  holder.withdraw(1);
  EXPECT_TRUE(watch.expired());
}

TEST_P(TwoPlanes, ManyConcurrentPullsAllEnd) {
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

TEST_P(TwoPlanes, AnOlderIncarnationIsRefused) {
  stash.put(StepId(0), plane_rows(0, 2));
  holder.begin(Incarnation(1));
  const RowsResult result = pull(puller, 1, StepId(0), {SampleId(1)});
  ASSERT_TRUE(std::holds_alternative<Failure>(result));
  EXPECT_EQ(std::get<Failure>(result).code, Errc::stale);
  puller.begin(Incarnation(1));
  EXPECT_TRUE(
    std::holds_alternative<Rows>(pull(puller, 1, StepId(0), {SampleId(1)})));
}

TEST_P(TwoPlanes, AbortLastsUntilTheNextIncarnation) {
  stash.put(StepId(0), plane_rows(0, 2));
  puller.abort({Errc::aborted, "master", "stop", "worker 7 died"});
  EXPECT_EQ(std::get<Failure>(pull(puller, 1, StepId(0), {SampleId(1)})).cause,
            "worker 7 died");
  puller.begin(Incarnation(0));
  EXPECT_TRUE(
    std::holds_alternative<Rows>(pull(puller, 1, StepId(0), {SampleId(1)})));
}

TEST_P(TwoPlanes, AStoppedPeerFailsThePull) {
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

TEST_P(TwoPlanes, AWrongTokenIsRefused) {
  DataPlane stranger(options(2, "guess"));
  stranger.set_peer(WorkerId(1), "127.0.0.1", holder.port());
  const RowsResult result = pull(stranger, 1, StepId(0), {SampleId(1)});
  ASSERT_TRUE(std::holds_alternative<Failure>(result));
  EXPECT_EQ(std::get<Failure>(result).code, Errc::refused);
  EXPECT_THAT(std::get<Failure>(result).what, HasSubstr("wrong token"));
}

TEST(DataPlane, ReportsAPortInUse) {
  DataPlane first(plane_options(0));
  DataPlaneOptions options = plane_options(1);
  options.port = first.port();
  EXPECT_THROW(DataPlane{options}, FailureError);
}

TEST(DataPlane, AnAbsentPeerFailsThePull) {
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

/// A plain socket that sends arbitrary bytes to a plane.
class RawPeer {
public:
  explicit RawPeer(std::uint16_t port)
    : socket_(troupe::test::connect_to(port)) {}
  void send(const std::string& bytes) {
    ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  /// Bytes that arrived until the plane closed the connection.
  std::size_t read_to_end() {
    char block[4096];
    std::size_t sum = 0;
    for (ssize_t n; (n = ::recv(socket_.get(), block, sizeof(block), 0)) > 0;)
      sum += static_cast<std::size_t>(n);
    return sum;
  }

private:
  Descriptor socket_;
};

TEST_P(TwoPlanes, HostileFramesCloseOnlyTheirConnection) {
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
    hello + encode_frame(MemoryReply{1}, 0),
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

TEST_P(TwoPlanes, TrafficOverTlsIsUnreadable) {
  const std::string text = "nobody on the way may read these rows";
  std::vector<std::uint32_t> lengths{static_cast<std::uint32_t>(text.size())};
  stash.put(StepId(0),
            Rows({SampleId(1)},
                 {make_column("tokens", DType::u8, lengths, text.data()),
                  make_column("scores", DType::u8, lengths, text.data())}));
  const troupe::test::WireTap tap(holder.port());
  puller.set_peer(WorkerId(1), "127.0.0.1", tap.port());
  const RowsResult result = pull(puller, 1, StepId(0), {SampleId(1)});
  ASSERT_TRUE(std::holds_alternative<Rows>(result));
  EXPECT_EQ(std::memcmp(std::get<Rows>(result).at("tokens").data.data(),
                        text.data(), text.size()),
            0);
  EXPECT_GT(tap.bytes(), text.size());
  EXPECT_EQ(tap.saw("may read these"), !GetParam());
  EXPECT_EQ(tap.saw("secret"), !GetParam()) << "the token";
}

TEST_P(TwoPlanes, RowsOfManySizesArriveWhole) {
  // pieces shorter and longer than a TLS record, and their borders
  std::uint32_t next = 0;
  const auto put = [&](std::uint32_t length) {
    std::vector<std::uint8_t> bytes(length);
    std::iota(bytes.begin(), bytes.end(), static_cast<std::uint8_t>(next));
    stash.put(StepId(1),
              Rows({SampleId(next++)},
                   {make_column("tokens", DType::u8, {length}, bytes.data()),
                    make_column("scores", DType::u8, {1}, "x")}));
  };
  for (const std::uint32_t length : {1, 16383, 16384, 16385, 0, 300'000, 5})
    put(length);
  for (std::uint32_t i = 0; i < 200; ++i) // more pieces than fit in one call
    put(7 * i % 400);
  std::vector<SampleId> all;
  for (std::uint32_t i = 0; i < next; ++i)
    all.emplace_back(i);
  const RowsResult result = pull(puller, 1, StepId(1), all);
  ASSERT_TRUE(std::holds_alternative<Rows>(result));
  const Column& got = std::get<Rows>(result).at("tokens");
  const Rows expected = stash.get(StepId(1), kPlaneKeys, all);
  ASSERT_EQ(got.data.size_bytes(), expected.at("tokens").data.size_bytes());
  EXPECT_EQ(std::memcmp(got.data.data(), expected.at("tokens").data.data(),
                        got.data.size_bytes()),
            0);
}

/// Returns the failure of a pull between planes of different runs.
std::string strange_pull(std::shared_ptr<const TlsContext> holders,
                         std::shared_ptr<const TlsContext> pullers) {
  Stash stash;
  stash.put(StepId(0), plane_rows(0, 2));
  DataPlaneOptions of_holder = plane_options(1), of_puller = plane_options(0);
  of_holder.tls = std::move(holders);
  of_puller.tls = std::move(pullers);
  DataPlane holder(of_holder), puller(of_puller);
  holder.serve_rows(stash);
  puller.set_peer(WorkerId(1), "127.0.0.1", holder.port());
  const RowsResult result = pull(puller, 1, StepId(0), {SampleId(1)});
  const auto* failure = std::get_if<Failure>(&result);
  EXPECT_EQ(holder.counters().bytes_sent == 0, failure != nullptr);
  return failure == nullptr ? "rows" : to_string(*failure);
}

TEST(DataPlane, OnlyTheRunsCertificateIsAccepted) {
  const auto run = troupe::test::new_run_tls();
  EXPECT_EQ(strange_pull(run, run), "rows");
  EXPECT_THAT(strange_pull(run, troupe::test::new_run_tls()),
              HasSubstr("certificate verify failed"));
  EXPECT_THAT(strange_pull(run, nullptr), HasSubstr("worker 1"));
  EXPECT_THAT(strange_pull(nullptr, run), HasSubstr("worker 1"));
}

TEST(DataPlane, AnUnfinishedHandshakeIsClosedAtTheDeadline) {
  DataPlaneOptions options = plane_options(1);
  options.tls = troupe::test::new_run_tls();
  options.progress_deadline = 200ms;
  const DataPlane plane(options);
  for (const std::string& bytes :
       {std::string(), std::string("\x16\x03\x01\x02\x00\x01", 6)}) {
    const auto start = std::chrono::steady_clock::now();
    RawPeer peer(plane.port());
    peer.send(bytes);
    EXPECT_EQ(peer.read_to_end(), 0u);
    EXPECT_GE(std::chrono::steady_clock::now() - start, 150ms);
  }
}

} // namespace
} // namespace troupe::net
