// Connections to a data plane that say nothing.
#include "net/base/defaults.hpp"
#include "net/data_plane/data_plane.hpp"

#include <gtest/gtest.h>

#include "tests/support/net/strangers.hpp"
#include "tests/support/net/test_tls.hpp"

#include <array>
#include <future>
#include <optional>

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

TEST_P(Strangers, CostFewDescriptorsAndDelayNobodyForLong) {
  const auto tls = GetParam() ? test::new_run_tls() : nullptr;
  DataPlane holder(options_of(1, tls));
  DataPlane puller(options_of(0, tls));
  puller.set_peer(WorkerId(1), "127.0.0.1", holder.port());
  const auto before = test::num_descriptors();
  const test::SilentStrangers strangers(holder.port(), 4 * kMaxUngreeted);
  std::promise<std::optional<Failure>> answered;
  std::array<std::byte, 1> into{};
  puller.pull_memory(WorkerId(1), 7, 0, into,
                     [&](std::optional<Failure> failure) {
                       answered.set_value(std::move(failure));
                     });
  const auto answer = answered.get_future().get();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->code, Errc::bug) << "it has no such memory: it answered";
  EXPECT_LE(test::num_descriptors() - before, 5 * kMaxUngreeted + 8);
  EXPECT_EQ(strangers.num_closed(2 * kGreetWithin), 4 * kMaxUngreeted);
}

} // namespace
} // namespace troupe::net
