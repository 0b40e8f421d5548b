// Heartbeats from joining to the end, in time that the test controls: nodes are
// fakes that reply as long as they live.
#include "actors/membership/heartbeat_actor.hpp"
#include "actors/membership/join_actor.hpp"
#include "actors/membership/setup_actor.hpp"
#include "config/base/defaults.hpp"

#include "tests/support/actors/driven_actors.hpp"
#include <gmock/gmock.h>

#include <array>

namespace troupe::actors {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// Requests to a fake, and whether it replies.
struct FakeResidency {
  int heard = 0;
  bool beats = true;
  bool told_to_end = false;
};

struct LivingState {
  std::string name = "node";
  std::vector<Reply<SetupDone>> set_ups;
  std::vector<Reply<HeartbeatReply>> kept;
};

NodeActor::behavior_type living_node(Self<NodeActor, LivingState> self,
                                     FakeResidency* life) {
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
    [](snapshot_atom, const Context&, const SnapshotCopyOrder&) {
      return SnapshotDone{};
    },
    [=](ping_atom, const Context& context, const PingOrder&) {
      ++life->heard;
      Reply<HeartbeatReply> reply{self, context};
      if (life->beats)
        reply.deliver({});
      else
        self->state.kept.push_back(reply);
      return reply.promise();
    },
    [](abort_atom, const FailureMessage&) {},
    [=](stop_atom) { life->told_to_end = true; },
    [](tick_atom) {},
    [=](done_atom, std::uint64_t) { self->state.set_ups.at(0).deliver({}); },
  };
}

HeartbeatListener::behavior_type listener(Self<HeartbeatListener, FakeState>,
                                          std::vector<std::uint32_t>* heard) {
  return {[=](ping_atom, std::uint32_t worker, const HeartbeatReply&) {
    heard->push_back(worker);
  }};
}

class Heartbeat : public DrivenActors {
protected:
  Heartbeat() {
    for (auto& life : lives_)
      nodes_.push_back(spawn(living_node, &life));
    JoinSetup setup;
    setup.num_workers = 2;
    setup.heartbeat = heartbeat_;
    setup.on_full = [this](const auto&) { ++full_; };
    join_actor_ = spawn(join_actor, std::move(setup));
  }

  void join(std::uint32_t worker) {
    JoinRequest request;
    request.wanted = worker;
    request.pid = 10 + worker;
    tell(join_actor_, join_atom::value, request, nodes_[worker]);
    pass(defaults::heartbeat_period);
  }
  void set_up() {
    join(0);
    join(1);
    SetupInputs setup;
    setup.nodes = nodes_;
    setup.asks = asks_;
    setup.on_ready = [this](const auto&) { ++ready_; };
    tell(spawn(setup_actor, std::move(setup)), start_atom::value);
  }
  std::string work_of(std::uint32_t worker) const {
    return asks_->work_of(WorkerId{worker});
  }

  std::vector<bool> suspects_; ///< reports about worker 1
  std::vector<Failure> lost_;
  HeartbeatActor heartbeat_ = spawn(
    heartbeat_actor, HeartbeatSetup{.asks = asks_,
                                    .on_suspect =
                                      [this](WorkerId worker, bool suspect) {
                                        EXPECT_EQ(worker, WorkerId{1});
                                        suspects_.push_back(suspect);
                                      },
                                    .on_lost =
                                      [this](WorkerId, const Failure& failure) {
                                        lost_.push_back(failure);
                                      }});
  std::array<FakeResidency, 2> lives_;
  std::vector<NodeActor> nodes_;
  JoinActor join_actor_;
  int full_ = 0;
  int ready_ = 0;
};

/// Longer than any silence that is allowed.
constexpr auto long_time = 2 * defaults::dead_after;

TEST(WorkerLiveness, FollowsFromMissedHeartbeats) {
  EXPECT_EQ(liveness_after(1200ms), WorkerLiveness::steady);
  EXPECT_EQ(liveness_after(1300ms), WorkerLiveness::suspect)
    << "three were missed";
  EXPECT_EQ(liveness_after(9700ms), WorkerLiveness::suspect);
  EXPECT_EQ(liveness_after(9800ms), WorkerLiveness::lost);
}

TEST(WorkerLiveness, IsLostAfterTheGivenLimit) {
  EXPECT_EQ(liveness_after(12s, 30s), WorkerLiveness::suspect);
  EXPECT_EQ(liveness_after(29700ms, 30s), WorkerLiveness::suspect);
  EXPECT_EQ(liveness_after(29800ms, 30s), WorkerLiveness::lost);
}

TEST_F(Heartbeat, AWorkerThatWaitsForOthersGetsHeartbeats) {
  join(0);
  pass(long_time);
  EXPECT_GE(lives_[0].heard, long_time / defaults::heartbeat_period - 1);
  EXPECT_EQ(full_, 0);
  join(1);
  EXPECT_EQ(full_, 1);
  EXPECT_THAT(lost_, IsEmpty());
}

TEST_F(Heartbeat, EachWorkerIsAskedOncePerPeriod) {
  set_up();
  const auto heard = lives_[0].heard;
  pass(long_time);
  EXPECT_EQ(lives_[0].heard - heard, long_time / defaults::heartbeat_period);
}

TEST_F(Heartbeat, ALongLoadGetsHeartbeatsAndIsNoFailure) {
  set_up();
  pass(long_time);
  EXPECT_GE(lives_[1].heard, long_time / defaults::heartbeat_period);
  EXPECT_THAT(lost_, IsEmpty());
  EXPECT_THAT(suspects_, IsEmpty());
  for (const auto& node : nodes_)
    tell(node, done_atom::value, std::uint64_t{0});
  EXPECT_EQ(ready_, 1);
}

TEST_F(Heartbeat, AWorkerThatHangsWhileLoadingIsNamedWithItsTask_I7) {
  set_up();
  lives_[1].beats = false;
  pass(2s);
  EXPECT_THAT(suspects_, ElementsAre(true)) << "within two seconds";
  EXPECT_THAT(lost_, IsEmpty());
  pass(defaults::dead_after - 2s);
  ASSERT_THAT(lost_, SizeIs(1));
  EXPECT_EQ(lost_[0].code, Errc::peer_lost);
  EXPECT_EQ(lost_[0].who, "worker 1 (pid 11)");
  EXPECT_THAT(lost_[0].what, ::testing::StartsWith("no heartbeat for "));
  EXPECT_EQ(work_of(1), " during set-up of worker 1");
  EXPECT_EQ(ready_, 0);
  pass(long_time);
  EXPECT_THAT(lost_, SizeIs(1)) << "told once";
}

TEST_F(Heartbeat, AWorkerThatHangsWhileWaitingForOthersIsLost) {
  join(1);
  lives_[1].beats = false;
  pass(defaults::dead_after);
  ASSERT_THAT(lost_, SizeIs(1));
  EXPECT_EQ(work_of(1), "") << "nothing was asked of it";
}

TEST_F(Heartbeat, AWorkerThatRepliesAgainIsNoLongerSuspect) {
  set_up();
  lives_[1].beats = false;
  pass(3s);
  lives_[1].beats = true;
  pass(long_time);
  EXPECT_THAT(suspects_, ElementsAre(true, false));
  EXPECT_THAT(lost_, IsEmpty());
}

TEST_F(Heartbeat, AClosedConnectionIsALossAtOnce) {
  set_up();
  kill(nodes_[1].address());
  ASSERT_THAT(lost_, SizeIs(1));
  EXPECT_EQ(lost_[0].who, "worker 1 (pid 11)");
  EXPECT_EQ(lost_[0].what, "the process ended or its connection closed");
}

TEST_F(Heartbeat, AMasterThatWasSuspendedWaitsForHeartbeatsFirst) {
  set_up();
  scheduler_.advance_time(long_time); // no process ran
  run();
  pass(long_time);
  EXPECT_THAT(suspects_, IsEmpty());
  EXPECT_THAT(lost_, IsEmpty());
}

TEST_F(Heartbeat, ListenersGetEveryHeartbeatReply) {
  std::vector<std::uint32_t> heard;
  tell(heartbeat_, ping_atom::value, spawn(listener, &heard));
  set_up();
  heard.clear();
  pass(2 * defaults::heartbeat_period);
  EXPECT_THAT(heard, ElementsAre(0, 1, 0, 1));
}

TEST_F(Heartbeat, NoWorkerIsAskedAfterTheEnd) {
  set_up();
  tell(heartbeat_, stop_atom::value);
  EXPECT_TRUE(lives_[0].told_to_end && lives_[1].told_to_end);
  const auto heard = lives_[0].heard;
  kill(nodes_[1].address());
  pass(long_time);
  EXPECT_EQ(lives_[0].heard, heard);
  EXPECT_THAT(lost_, IsEmpty()) << "it ended in good order";
}

TEST_F(Heartbeat, EndsAfterTheLastWorkerHasEnded) {
  set_up();
  caf::scoped_actor observer{system_};
  observer->monitor(heartbeat_);
  const auto ended = [&] {
    bool down = false;
    observer->receive([&](const caf::down_msg&) { down = true; },
                      caf::after(0s) >> [] {});
    return down;
  };
  tell(heartbeat_, stop_atom::value);
  kill(nodes_[1].address());
  EXPECT_FALSE(ended()) << "worker 0 may not have heard it yet";
  kill(nodes_[0].address());
  EXPECT_TRUE(ended());
}

} // namespace
} // namespace troupe::actors
