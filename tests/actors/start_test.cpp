// The start of a run, in a scheduler that the test drives: nodes are fakes that
// answer heartbeats as long as they live.
#include "actors/lobby_actor.hpp"
#include "actors/setup_actor.hpp"
#include "actors/system.hpp"
#include "config/defaults.hpp"

#include <caf/scheduler/test_coordinator.hpp>

#include <gmock/gmock.h>

#include <array>
#include <chrono>
#include <memory>
#include <vector>

namespace troupe::actors {
namespace {

/// What a fake saw, and whether it answers.
struct Heart {
  int heard = 0;
  bool beats = true;
};

struct StartNodeState {
  std::string name = "node";
  std::vector<Answer<SetupDone>> set_ups;
  std::vector<Answer<Pong>> kept;
};

NodeActor::behavior_type start_node(Self<NodeActor, StartNodeState> self,
                                    Heart* heart) {
  return {
    [=](setup_atom, const Context& context, const SetupOrder&) {
      self->state.set_ups.emplace_back(self, context);
      return self->state.set_ups.back().promise();
    },
    [](commit_atom, const Context&, const CommitOrder&) {
      return CommitDone{};
    },
    [](copy_atom, const Context&, const CopyRowsOrder&) { return CopyDone{}; },
    [](write_atom, const Context&, const WriteRowsOrder&) {
      return WriteDone{};
    },
    [](load_atom, const Context&, const LoadRowsOrder&) { return LoadDone{}; },
    [=](ping_atom, const Context& context, const PingOrder&) {
      ++heart->heard;
      Answer<Pong> answer{self, context};
      if (heart->beats)
        answer.deliver({});
      else
        self->state.kept.push_back(answer);
      return answer.promise();
    },
    [](abort_atom, const Trouble&) {},
    [](stop_atom) {},
    [](tick_atom) {},
    [=](done_atom, std::uint64_t) { self->state.set_ups.at(0).deliver({}); },
  };
}

class Start : public testing::Test {
protected:
  Start() {
    add_message_types(config_);
    config_.set("scheduler.policy", caf::atom("testing"));
    system_ = std::make_unique<caf::actor_system>(config_);
    scheduler_
      = dynamic_cast<caf::scheduler::test_coordinator*>(&system_->scheduler());
    for (auto& heart : hearts_)
      nodes_.push_back(system_->spawn(start_node, &heart));
  }
  ~Start() override {
    for (const auto& node : nodes_)
      caf::anon_send_exit(node, caf::exit_reason::kill);
    caf::anon_send_exit(lobby_, caf::exit_reason::kill);
    caf::anon_send_exit(setup_, caf::exit_reason::kill);
    run();
  }

  void run() { // without the clock
    while (scheduler_->try_run_once())
      ;
  }
  void pass(std::chrono::milliseconds time) {
    for (; time.count() > 0; time -= defaults::heartbeat_period) {
      scheduler_->advance_time(defaults::heartbeat_period);
      run();
    }
  }
  void open_door() {
    LobbySetup setup;
    setup.num_workers = 2;
    setup.on_full = [this](const auto&) { ++full_; };
    lobby_ = system_->spawn(lobby_actor, std::move(setup));
  }
  void join(std::size_t worker) {
    caf::anon_send(lobby_, join_atom::value, JoinRequest{}, nodes_[worker]);
    run();
  }
  void set_up() {
    SetupSetup setup;
    setup.nodes = nodes_;
    setup.worker_names = {"worker 0 (pid 10)", "worker 1 (pid 11)"};
    setup.asks = asks_;
    setup.on_ready = [this](const auto&) { ++ready_; };
    setup.on_failure
      = [this](const Failure& failure) { failures_.push_back(failure); };
    setup_ = system_->spawn(setup_actor, std::move(setup));
    caf::anon_send(setup_, start_atom::value);
    run();
  }
  void let_everybody_die_who_is_silent() {
    asks_->expire(AskTable::Clock::now() + 2 * defaults::dead_after);
    run();
  }

  caf::actor_system_config config_;
  std::unique_ptr<caf::actor_system> system_;
  caf::scheduler::test_coordinator* scheduler_ = nullptr;
  std::shared_ptr<AskTable> asks_ = std::make_shared<AskTable>();
  std::array<Heart, 2> hearts_;
  std::vector<NodeActor> nodes_;
  LobbyActor lobby_;
  SetupActor setup_;
  int full_ = 0;
  int ready_ = 0;
  std::vector<Failure> failures_;
};

TEST_F(Start, AWorkerThatWaitsForOthersHearsTheMaster) {
  open_door();
  join(0);
  const auto wait = 2 * defaults::worker_exits_without_master_after;
  pass(wait);
  EXPECT_GE(hearts_[0].heard, wait / defaults::heartbeat_period - 1);
  join(1);
  pass(defaults::heartbeat_period);
  EXPECT_EQ(full_, 1);
  const auto heard = hearts_[0].heard;
  pass(wait);
  EXPECT_EQ(hearts_[0].heard, heard) << "from now on others tell it";
}

TEST_F(Start, ALongLoadHearsTheMasterAndIsNoFailure) {
  set_up();
  const auto wait = 2 * defaults::worker_exits_without_master_after;
  pass(wait);
  let_everybody_die_who_is_silent();
  EXPECT_GE(hearts_[1].heard, wait / defaults::heartbeat_period);
  EXPECT_THAT(failures_, testing::IsEmpty());
  for (const auto& node : nodes_)
    caf::anon_send(node, done_atom::value, std::uint64_t{0});
  run();
  EXPECT_EQ(ready_, 1);
  const auto heard = hearts_[1].heard;
  pass(wait);
  EXPECT_EQ(hearts_[1].heard, heard) << "now the master asks";
}

TEST_F(Start, AWorkerThatHangsWhileItLoadsIsNamedWithWhatItDidI7) {
  hearts_[1].beats = false;
  set_up();
  pass(3 * defaults::heartbeat_period);
  let_everybody_die_who_is_silent();
  ASSERT_THAT(failures_, testing::SizeIs(1));
  EXPECT_EQ(failures_[0].who, "worker 1 (pid 11)");
  EXPECT_THAT(failures_[0].what, testing::StartsWith("no heartbeat: "));
  EXPECT_THAT(failures_[0].what,
              testing::EndsWith(" during set-up of worker 1"));
  EXPECT_EQ(ready_, 0);
}

} // namespace
} // namespace troupe::actors
