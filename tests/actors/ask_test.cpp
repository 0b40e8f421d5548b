// The call table in a scheduler that the test drives: every ask ends once.
#include "actors/ask.hpp"
#include "actors/open_answers.hpp"
#include "actors/system.hpp"

#include <caf/scheduler/test_coordinator.hpp>

#include <gmock/gmock.h>

namespace troupe::actors {
namespace {

using Server = caf::typed_actor<handles<next_atom, NextOrder, DataBatch>>;
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

/// Keeps every answer open until the test delivers it.
Server::behavior_type server_actor(Self<Server, ServerState> self,
                                   std::vector<Answer<DataBatch>>** open) {
  *open = &self->state.open;
  return {[=](next_atom, const Context& context, const NextOrder&) {
    self->state.open.emplace_back(self, context);
    return self->state.open.back().promise();
  }};
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
    server_ = system_->spawn(server_actor, &open_);
    client_ = system_->spawn(client_actor, server_, table_, &outcome_);
    caf::anon_send(client_, start_atom::value);
    scheduler_->run();
  }
  ~Ask() override {
    caf::anon_send_exit(server_, caf::exit_reason::kill);
    caf::anon_send_exit(client_, caf::exit_reason::kill);
    scheduler_->run();
  }

  caf::actor_system_config config_;
  std::unique_ptr<caf::actor_system> system_;
  caf::scheduler::test_coordinator* scheduler_ = nullptr;
  std::shared_ptr<AskTable> table_ = std::make_shared<AskTable>();
  std::vector<Answer<DataBatch>>* open_ = nullptr;
  Outcome outcome_;
  Server server_;
  Client client_;
};

TEST_F(Ask, AValueEndsIt) {
  open_->front().deliver({});
  scheduler_->run();
  EXPECT_EQ(outcome_.values, 1);
  EXPECT_THAT(table_->waits(AskTable::Clock::now()), testing::IsEmpty());
}

TEST_F(Ask, AFailureKeepsItsFirstCause) {
  open_->front().fail({Errc::io, "disk", "full", "quota"});
  scheduler_->run();
  EXPECT_EQ(outcome_.failure.code, Errc::io);
  EXPECT_EQ(outcome_.failure.who, "disk");
  EXPECT_EQ(outcome_.failure.cause, "quota");
}

TEST_F(Ask, ALostWorkerEndsItOnceAndALateValueIsIgnored) {
  table_->fail_worker(WorkerId{1}, {Errc::peer_lost, "worker 1", "gone", ""});
  scheduler_->run();
  open_->front().deliver({});
  scheduler_->run();
  EXPECT_EQ(outcome_.failures, 1);
  EXPECT_EQ(outcome_.values, 0);
}

TEST_F(Ask, AnotherWorkersDeathChangesNothing) {
  table_->fail_worker(WorkerId{0}, {Errc::peer_lost, "worker 0", "gone", ""});
  scheduler_->run();
  EXPECT_EQ(outcome_.failures, 0);
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
