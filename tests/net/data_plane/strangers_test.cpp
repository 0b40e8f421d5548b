// Connections of a data plane whose other end says nothing, or dies.
#include "net/base/defaults.hpp"
#include "net/data_plane/data_plane.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <gtest/gtest.h>

#include "tests/support/net/strangers.hpp"
#include "tests/support/net/test_tls.hpp"

#include <array>
#include <future>
#include <optional>
#include <thread>

namespace troupe::net {
namespace {

using namespace std::chrono_literals;

DataPlaneOptions options_of(std::uint32_t self,
                            std::shared_ptr<const TlsContext> tls) {
  DataPlaneOptions options;
  options.self = WorkerId(self);
  options.token = "secret";
  options.tls = std::move(tls);
  options.progress_deadline = 20s;
  return options;
}

class Strangers : public ::testing::TestWithParam<bool> {};

INSTANTIATE_TEST_SUITE_P(, Strangers, ::testing::Bool(), [](const auto& one) {
  return one.param ? "OverTls" : "InClear";
});

/// Returns the failure of a pull, null if there is none.
std::optional<Failure> failed_pull(DataPlane& puller) {
  std::promise<std::optional<Failure>> answered;
  std::array<std::byte, 1> into{};
  puller.pull_memory(WorkerId(1), 7, 0, into,
                     [&](std::optional<Failure> failure) {
                       answered.set_value(std::move(failure));
                     });
  return answered.get_future().get();
}

TEST(DyingPeers, InTheTlsHandshakeAreLostAndRefuseNobody_I7) {
  boost::asio::io_context io;
  boost::asio::ip::tcp::acceptor port(
    io, {boost::asio::ip::make_address("127.0.0.1"), 0});
  std::jthread dying([&] {
    auto socket = port.accept();
    std::byte first{};
    socket.receive(boost::asio::buffer(&first, 1));
    socket.close(); // with bytes that nobody has read: a reset
    port.close();
  });
  DataPlane puller(options_of(0, test::new_run_tls()));
  puller.set_peer(WorkerId(1), "127.0.0.1", port.local_endpoint().port());
  const auto failure = failed_pull(puller);
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, Errc::peer_lost) << to_string(*failure);
}

TEST_P(Strangers, CostFewDescriptorsAndDelayNobodyForLong) {
  const auto tls = GetParam() ? test::new_run_tls() : nullptr;
  DataPlane holder(options_of(1, tls));
  DataPlane puller(options_of(0, tls));
  puller.set_peer(WorkerId(1), "127.0.0.1", holder.port());
  const auto before = test::num_descriptors();
  const test::SilentStrangers strangers(holder.port(), 4 * kMaxUngreeted);
  const auto answer = failed_pull(puller);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->code, Errc::bug) << "it has no such memory: it answered";
  EXPECT_LE(test::num_descriptors() - before, 5 * kMaxUngreeted + 8);
  EXPECT_EQ(strangers.num_closed(2 * kGreetWithin), 4 * kMaxUngreeted);
}

} // namespace
} // namespace troupe::net
