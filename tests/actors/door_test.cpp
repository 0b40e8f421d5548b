// Two systems of one process, connected through a door.
#include "actors/door.hpp"
#include "actors/lobby_actor.hpp"
#include "actors/system.hpp"
#include "config/error.hpp"

#include <caf/all.hpp>

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

/// A plain worker and a door over TLS both wait for the other's first word.
constexpr std::chrono::milliseconds patience = 5s;
constexpr std::uint32_t first_system = 40; // node ids differ from other tests'

class MastersDoor {
public:
  explicit MastersDoor(const Tls& tls) : door_(system_, tls) {
    LobbySetup setup;
    setup.token = "the token of this run";
    lobby_ = system_.spawn(lobby_actor, std::move(setup));
    port_ = door_.open(lobby_, "127.0.0.1", 0);
  }
  ~MastersDoor() {
    caf::anon_send_exit(lobby_, caf::exit_reason::kill);
  }
  std::uint16_t port() const {
    return port_;
  }
  void close() {
    door_.close(lobby_, port_);
  }

private:
  SystemConfig config_{first_system};
  caf::actor_system system_{config_};
  Door door_;
  LobbyActor lobby_;
  std::uint16_t port_ = 0;
};

class WorkersDoor {
public:
  explicit WorkersDoor(const Tls& tls, std::uint32_t number = 1)
    : config_(first_system + number),
      system_(config_),
      door_(system_, tls) {}

  /// Empty when the lobby was found, else why not.
  std::string come(std::uint16_t port) {
    auto found = door_.find("127.0.0.1", port, patience);
    if (auto* why = std::get_if<std::string>(&found))
      return *why;
    lobby_ = std::get<LobbyActor>(std::move(found));
    return "";
  }
  /// What the lobby says to a worker with this token.
  std::string ask(const std::string& token) {
    caf::scoped_actor self{system_};
    JoinRequest request;
    request.token = token;
    std::string said;
    self->request(lobby_, 20s, join_atom::value, request, NodeActor{})
      .receive([&](const JoinAnswer&) { said = "welcome"; },
               [&](const caf::error& error) { said = system_.render(error); });
    return said;
  }

private:
  SystemConfig config_;
  caf::actor_system system_;
  Door door_;
  LobbyActor lobby_;
};

class Doors : public ::testing::TestWithParam<bool> {
protected:
  Tls tls_ = GetParam() ? test::new_run_tls() : nullptr;
};

INSTANTIATE_TEST_SUITE_P(, Doors, ::testing::Bool(), [](const auto& one) {
  return one.param ? "OverTls" : "InClear";
});

TEST_P(Doors, AMessageAndItsAnswerPassAndNobodyReadsThemOverTls) {
  const MastersDoor master(tls_);
  const test::WireTap tap(master.port());
  WorkersDoor worker(tls_);
  ASSERT_EQ(worker.come(tap.port()), "");
  const std::string much(100'000, 'x'); // several records
  EXPECT_THAT(worker.ask("another token " + much), HasSubstr("wrong token"));
  EXPECT_GT(tap.bytes(), much.size());
  EXPECT_EQ(tap.saw("another token"), !GetParam());
  EXPECT_EQ(tap.saw("wrong token"), !GetParam());
}

TEST(SecureDoor, OnlyTheRunsCertificateOpensIt) {
  const auto run = test::new_run_tls();
  const MastersDoor master(run);
  EXPECT_THAT(WorkersDoor(test::new_run_tls()).come(master.port()),
              HasSubstr("certificate verify failed"));
  const MastersDoor in_clear(nullptr);
  EXPECT_NE(WorkersDoor(run).come(in_clear.port()), "");
  EXPECT_EQ(WorkersDoor(run).come(master.port()), "") << "and still opens";
}

TEST(SecureDoor, StrangersDisturbNobodyAndCostNothingWhileTheyWait) {
  const auto run = test::new_run_tls();
  const MastersDoor master(run);
  WorkersDoor worker(run);
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
  EXPECT_EQ(WorkersDoor(run, 2).come(master.port()), "");
}

TEST(SecureDoor, AWorkerInClearDoesNotWaitForEver) {
  const MastersDoor master(test::new_run_tls());
  EXPECT_NE(WorkersDoor(nullptr).come(master.port()), "");
}

TEST(SecureDoor, NobodyElseComesInOnceItIsClosed) {
  const auto run = test::new_run_tls();
  MastersDoor master(run);
  WorkersDoor worker(run);
  ASSERT_EQ(worker.come(master.port()), "");
  master.close();
  WorkersDoor late(run, 2);
  std::string why;
  const auto end = std::chrono::steady_clock::now() + 20s;
  while (why.empty()
         && std::chrono::steady_clock::now()
              < end) // closing is a message on its way
    why = late.come(master.port());
  EXPECT_NE(why, "");
  EXPECT_THAT(worker.ask("no token"), HasSubstr("wrong token"));
}

} // namespace
} // namespace troupe::actors
