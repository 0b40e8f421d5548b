// Actors in a scheduler that the test drives: messages are handled only in
// `run` and `pass`, in the order of sending, and the test sets the time. Base
// of the fixtures in tests/actors.
#pragma once

#include "actors/protocol/ask.hpp"
#include "actors/protocol/system.hpp"

#include <caf/scheduler/test_coordinator.hpp>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

namespace troupe::actors {

struct DrivenConfig : caf::actor_system_config {
  DrivenConfig() {
    actors::add_message_types(*this); // the base class has its own
    set("scheduler.policy", caf::atom("testing"));
  }
};

class DrivenActors : public ::testing::Test {
protected:
  void TearDown() override { // actors end before what the test holds
    for (const auto& actor : ours_)
      caf::anon_send_exit(actor, caf::exit_reason::kill);
    run();
  }

  template <class... Args>
  auto spawn(Args&&... args) {
    const auto actor = system_.spawn(std::forward<Args>(args)...);
    ours_.push_back(actor.address());
    return actor;
  }
  template <class Actor, class... Args>
  void tell(const Actor& actor, Args&&... message) {
    caf::anon_send(actor, std::forward<Args>(message)...);
    run();
  }
  void kill(const caf::actor_addr& actor) {
    caf::anon_send_exit(actor, caf::exit_reason::kill);
    run();
  }
  void run() { // without advancing the clock
    while (scheduler_.try_run_once())
      ;
  }
  void pass(std::chrono::milliseconds time) {
    constexpr std::chrono::milliseconds moment{100};
    for (; time.count() > 0; time -= moment) {
      scheduler_.advance_time(moment);
      run();
    }
  }

  std::shared_ptr<AskTable> asks_ = std::make_shared<AskTable>();
  DrivenConfig config_;
  caf::actor_system system_{config_};
  caf::scheduler::test_coordinator& scheduler_
    = dynamic_cast<caf::scheduler::test_coordinator&>(system_.scheduler());
  std::vector<caf::actor_addr> ours_;
};

/// Sends an ask, set by the test, when it gets `start_atom`.
using Client = caf::typed_actor<caf::reacts_to<start_atom>, ask_failed>;
struct ClientState {
  std::string name = "client";
  Asks asks;
};
using ClientSelf = Self<Client, ClientState>;

inline Client::behavior_type
client_actor(ClientSelf self, std::shared_ptr<AskTable> asks,
             std::function<void(ClientSelf)> on_start) {
  self->state.asks = Asks{std::move(asks)};
  return {[=](start_atom) { on_start(self); },
          [=](fail_atom, std::uint64_t id, const FailureMessage& message) {
            self->state.asks.fail(id, to_failure(message));
          }};
}

/// A call that replies with what `done` makes of its task.
struct FakeState {
  std::string name = "fake";
};
inline CallActor::behavior_type
fake_call(Self<CallActor, FakeState>,
          std::function<CallDone(const Context&, const CallTask&)> done) {
  return {[=](run_atom, const Context& context, const CallTask& task) {
            return done(context, task);
          },
          [](fail_atom, std::uint64_t, const FailureMessage&) {}};
}

/// Returns a data actor with these prompt lengths.
inline DataActor::behavior_type fake_data(Self<DataActor, FakeState>,
                                          std::vector<std::uint32_t> tokens) {
  std::vector<std::uint32_t> rows(tokens.size());
  std::iota(rows.begin(), rows.end(), 0);
  return {[=](next_atom, const Context&, const NextOrder&) {
    return DataBatch{.rows = rows, .tokens = tokens};
  }};
}

} // namespace troupe::actors
