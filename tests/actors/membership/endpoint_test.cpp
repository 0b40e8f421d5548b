// Two actor systems in one process, connected through an endpoint.
#include "actors/membership/endpoint.hpp"
#include "actors/membership/join_actor.hpp"
#include "actors/protocol/system.hpp"
#include "config/base/error.hpp"
#include "net/base/defaults.hpp"

#include <caf/all.hpp>

#include "tests/support/net/strangers.hpp"
#include "tests/support/net/test_tls.hpp"
#include "tests/support/net/wire_tap.hpp"
#include <gmock/gmock.h>
#include <poll.h>
#include <sys/resource.h>

#include <chrono>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace troupe::actors {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using Tls = std::shared_ptr<const net::TlsContext>;

/// A plain worker and an endpoint over TLS, which both wait for the first
/// message of the other.
constexpr std::chrono::milliseconds patience = 5s;
constexpr std::uint32_t first_system = 40; // node ids differ from those of
                                           // other tests

class MasterEndpoint {
public:
  explicit MasterEndpoint(const Tls& tls) : endpoint_(system_, tls) {
    JoinSetup setup;
    setup.token = "the token of this run";
    join_actor_ = system_.spawn(join_actor, std::move(setup));
    port_ = endpoint_.open(join_actor_, "127.0.0.1", 0);
  }
  ~MasterEndpoint() {
    caf::anon_send_exit(join_actor_, caf::exit_reason::kill);
  }
  std::uint16_t port() const {
    return port_;
  }
  void close() {
    endpoint_.close(join_actor_, port_);
  }

private:
  SystemConfig config_{first_system};
  caf::actor_system system_{config_};
  Endpoint endpoint_;
  JoinActor join_actor_;
  std::uint16_t port_ = 0;
};

class WorkerEndpoint {
public:
  explicit WorkerEndpoint(const Tls& tls, std::uint32_t number = 1)
    : config_(first_system + number),
      system_(config_),
      endpoint_(system_, tls) {}

  /// Returns "" if the join actor was found, else the reason.
  std::string come(std::uint16_t port) {
    auto found = endpoint_.find("127.0.0.1", port, patience);
    if (auto* why = std::get_if<std::string>(&found))
      return *why;
    join_actor_ = std::get<JoinActor>(std::move(found));
    return "";
  }
  /// Returns the join actor's reply to a worker with this token.
  std::string ask(const std::string& token) {
    caf::scoped_actor self{system_};
    JoinRequest request;
    request.token = token;
    std::string said;
    self->request(join_actor_, 20s, join_atom::value, request, NodeActor{})
      .receive([&](const JoinAccepted&) { said = "welcome"; },
               [&](const caf::error& error) { said = system_.render(error); });
    return said;
  }

private:
  SystemConfig config_;
  caf::actor_system system_;
  Endpoint endpoint_;
  JoinActor join_actor_;
};

class EndpointTest : public ::testing::TestWithParam<bool> {
protected:
  Tls tls_ = GetParam() ? test::new_run_tls() : nullptr;
};

INSTANTIATE_TEST_SUITE_P(, EndpointTest, ::testing::Bool(),
                         [](const auto& one) {
                           return one.param ? "OverTls" : "InClear";
                         });

TEST_P(EndpointTest, MessageAndReplyPassAndAreUnreadableOverTls) {
  const MasterEndpoint master(tls_);
  const test::WireTap tap(master.port());
  WorkerEndpoint worker(tls_);
  ASSERT_EQ(worker.come(tap.port()), "");
  const std::string much(100'000, 'x'); // several records
  EXPECT_THAT(worker.ask("another token " + much), HasSubstr("wrong token"));
  EXPECT_GT(tap.bytes(), much.size());
  EXPECT_EQ(tap.saw("another token"), !GetParam());
  EXPECT_EQ(tap.saw("wrong token"), !GetParam());
}

TEST(SecureEndpoint, OnlyTheRunsCertificateIsAccepted) {
  const auto run = test::new_run_tls();
  const MasterEndpoint master(run);
  EXPECT_THAT(WorkerEndpoint(test::new_run_tls()).come(master.port()),
              HasSubstr("certificate verify failed"));
  const MasterEndpoint in_clear(nullptr);
  EXPECT_NE(WorkerEndpoint(run).come(in_clear.port()), "");
  EXPECT_EQ(WorkerEndpoint(run).come(master.port()), "") << "and still opens";
}

TEST(SecureEndpoint, WaitingStrangersDisturbNoPeerAndCostNoMemory) {
  const auto run = test::new_run_tls();
  const MasterEndpoint master(run);
  WorkerEndpoint worker(run);
  ASSERT_EQ(worker.come(master.port()), "");
  std::vector<net::Descriptor> strangers;
  const auto say = [&](const std::string& bytes) {
    strangers.push_back(test::connect_to(master.port()));
    ::send(strangers.back().get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  };
  for (int i = 0; i < 5; ++i) {
    say("GET / HTTP/1.1\r\n\r\n");
    say(std::string(64, '\xff'));
    EXPECT_THAT(worker.ask("no token"), HasSubstr("wrong token"));
  }
  say("");
  say(std::string("\x16\x03\x01\x02\x00\x01", 6)); // the start of a hello
  const auto processor_time = [] {
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    return std::chrono::seconds(used.ru_utime.tv_sec + used.ru_stime.tv_sec)
           + std::chrono::microseconds(used.ru_utime.tv_usec
                                       + used.ru_stime.tv_usec);
  };
  const auto before = processor_time();
  pollfd waiting{strangers.back().get(), POLLIN, 0};
  EXPECT_EQ(::poll(&waiting, 1, 400), 0) << "it may finish its hello";
  EXPECT_LT(processor_time() - before, 200ms);
  EXPECT_THAT(worker.ask("no token"), HasSubstr("wrong token"));
  EXPECT_EQ(WorkerEndpoint(run, 2).come(master.port()), "");
}

TEST(SecureEndpoint, ManySilentStrangersCostFewDescriptorsAndAreClosed) {
  const auto run = test::new_run_tls();
  const MasterEndpoint master(run);
  const auto before = test::num_descriptors();
  const test::SilentStrangers strangers(master.port(), 3 * net::kMaxUngreeted);
  EXPECT_EQ(WorkerEndpoint(run).come(master.port()), "");
  EXPECT_LE(test::num_descriptors() - before, 4 * net::kMaxUngreeted + 8);
  EXPECT_EQ(strangers.num_closed(2 * net::kGreetWithin),
            3 * net::kMaxUngreeted);
}

TEST(SecureEndpoint, AWorkerWithoutTlsDoesNotWaitForever) {
  const MasterEndpoint master(test::new_run_tls());
  EXPECT_NE(WorkerEndpoint(nullptr).come(master.port()), "");
}

TEST(SecureEndpoint, AClosedEndpointAcceptsNoConnection) {
  const auto run = test::new_run_tls();
  MasterEndpoint master(run);
  WorkerEndpoint worker(run);
  ASSERT_EQ(worker.come(master.port()), "");
  master.close();
  std::string why;
  const auto end = std::chrono::steady_clock::now() + 20s;
  // closing is a message in flight; who came before it stays connected
  for (std::uint32_t i = 2;
       why.empty() && std::chrono::steady_clock::now() < end; ++i) {
    WorkerEndpoint late(run, i);
    why = late.come(master.port());
  }
  EXPECT_NE(why, "");
  EXPECT_THAT(worker.ask("no token"), HasSubstr("wrong token"));
}

} // namespace
} // namespace troupe::actors
