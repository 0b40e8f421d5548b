// The call table in a scheduler that the test drives: every ask ends once.
#include "actors/ask.hpp"
#include "actors/open_answers.hpp"
#include "actors/system.hpp"

#include <caf/scheduler/test_coordinator.hpp>

#include <gmock/gmock.h>

namespace troupe::actors {
namespace {

using Server
  = caf::typed_actor<handles<next_atom, NextOrder, DataBatch>, job_done>;
using Client = caf::typed_actor<caf::reacts_to<start_atom>, ask_failed>;

struct ServerState {
  std::string name = "server";
  std::vector<Answer<DataBatch>> open;
};
struct Outcome {
  int values = 0;
  int failures = 0;
  Failure failure;
};
struct ClientState {
  std::string name = "client";
  Asks asks;
};

constexpr std::uint64_t with_a_value = 0;
constexpr std::uint64_t with_a_failure = 1;

/// Keeps the answer open until the test says how it ends; delivers in its own
/// handler, as all our actors must.
Server::behavior_type server_actor(Self<Server, ServerState> self) {
  return {
    [=](next_atom, const Context& context, const NextOrder&) {
      self->state.open.emplace_back(self, context);
      return self->state.open.back().promise();
    },
    [=](done_atom, std::uint64_t how) {
      if (how == with_a_value)
        self->state.open.front().deliver({});
      else
        self->state.open.front().fail({Errc::io, "disk", "full", "quota"});
    },
  };
}

Client::behavior_type client_actor(Self<Client, ClientState> self,
                                   Server server,
                                   std::shared_ptr<AskTable> table,
                                   Outcome* outcome) {
  self->state.asks = Asks{table};
  return {
    [=](start_atom) {
      ask<DataBatch>(
        self, server, next_atom::value, Context{}, NextOrder{},
        {.name = "rows",
         .worker = WorkerId{1},
         .deadline = std::chrono::milliseconds{50}},
        [=](DataBatch&) { ++outcome->values; },
        [=](const Failure& failure) {
          ++outcome->failures;
          outcome->failure = failure;
        });
    },
    [=](fail_atom, std::uint64_t id, const Trouble& trouble) {
      self->state.asks.fail(id, to_failure(trouble));
    },
  };
}

class Ask : public testing::Test {
protected:
  Ask() {
    add_message_types(config_);
    config_.set("scheduler.policy", caf::atom("testing"));
    system_ = std::make_unique<caf::actor_system>(config_);
    scheduler_
      = dynamic_cast<caf::scheduler::test_coordinator*>(&system_->scheduler());
    server_ = system_->spawn(server_actor);
    client_ = system_->spawn(client_actor, server_, table_, &outcome_);
    caf::anon_send(client_, start_atom::value);
    scheduler_->run();
  }
  ~Ask() override {
    caf::anon_send_exit(server_, caf::exit_reason::kill);
    caf::anon_send_exit(client_, caf::exit_reason::kill);
    scheduler_->run();
  }

  void answer(std::uint64_t how) {
    caf::anon_send(server_, done_atom::value, how);
    scheduler_->run();
  }

  caf::actor_system_config config_;
  std::unique_ptr<caf::actor_system> system_;
  caf::scheduler::test_coordinator* scheduler_ = nullptr;
  std::shared_ptr<AskTable> table_ = std::make_shared<AskTable>();
  Outcome outcome_;
  Server server_;
  Client client_;
};

TEST_F(Ask, AValueEndsIt) {
  answer(with_a_value);
  EXPECT_EQ(outcome_.values, 1);
  EXPECT_THAT(table_->waits(AskTable::Clock::now()), testing::IsEmpty());
}

TEST_F(Ask, AFailureKeepsItsFirstCause) {
  answer(with_a_failure);
  EXPECT_EQ(outcome_.failure.code, Errc::io);
  EXPECT_EQ(outcome_.failure.who, "disk");
  EXPECT_EQ(outcome_.failure.cause, "quota");
}

TEST_F(Ask, AFailedRunEndsItOnceAndALateValueIsIgnored) {
  table_->fail_all({Errc::peer_lost, "worker 1", "gone", ""});
  scheduler_->run();
  answer(with_a_value);
  EXPECT_EQ(outcome_.failures, 1);
  EXPECT_EQ(outcome_.failure.who, "worker 1");
  EXPECT_EQ(outcome_.values, 0);
}

TEST_F(Ask, I7AMessageThatNobodyGetsNamesTheWait) {
  caf::anon_send_exit(server_, caf::exit_reason::kill);
  scheduler_->run();
  caf::anon_send(client_, start_atom::value);
  scheduler_->run();
  ASSERT_EQ(outcome_.failures, 1);
  EXPECT_EQ(outcome_.failure.who, "rows");
  EXPECT_THAT(outcome_.failure.what, testing::HasSubstr("not delivered"));
}

TEST_F(Ask, I7EveryWaitHasANameAndADeadline) {
  const auto now = AskTable::Clock::now();
  ASSERT_THAT(table_->waits(now), testing::SizeIs(1));
  EXPECT_EQ(table_->waits(now)[0].name, "rows");
  table_->expire(now + std::chrono::seconds{1});
  scheduler_->run();
  EXPECT_EQ(outcome_.failure.code, Errc::deadline);
}

TEST_F(Ask, AClosedTableFailsNewAsksAtOnce) {
  table_->fail_all({Errc::aborted, "run", "over", ""});
  caf::anon_send(client_, start_atom::value);
  scheduler_->run();
  EXPECT_EQ(outcome_.failures, 2);
}

} // namespace
} // namespace troupe::actors
