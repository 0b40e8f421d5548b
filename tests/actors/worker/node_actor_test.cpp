// A worker's node actor and the silence of its master, in time that the test
// controls.
#include "actors/worker/node_actor.hpp"
#include "config/base/defaults.hpp"

#include "tests/support/actors/driven_actors.hpp"
#include <gmock/gmock.h>

#include <optional>

namespace troupe::actors {
namespace {

using namespace std::chrono_literals;

/// Delays its reply to workers that want to join.
JoinActor::behavior_type busy_join_actor(Self<JoinActor, FakeState> self) {
  return {[=](join_atom, const JoinRequest&,
              const NodeActor&) -> caf::result<JoinAccepted> {
            return self->make_response_promise<JoinAccepted>();
          },
          [](join_atom, std::uint32_t) {}};
}

class NodeActorTest : public DrivenActors {
protected:
  NodeActorTest() {
    auto setup = std::make_shared<NodeSetup>();
    setup->join_actor = spawn(busy_join_actor);
    setup->on_end = [this](std::optional<Failure> why) { ended_ = why; };
    node_ = spawn(node_actor, setup);
    run();
  }
  void hear_the_master() {
    tell(node_, ping_atom::value, Context{}, PingOrder{});
  }

  NodeActor node_;
  std::optional<Failure> ended_;
};

TEST_F(NodeActorTest, EndsWhenTheMasterHasBeenSilentForTooLong) {
  pass(defaults::dead_after - 1s);
  hear_the_master();
  pass(defaults::dead_after - 1s);
  EXPECT_FALSE(ended_);
  pass(2s);
  ASSERT_TRUE(ended_);
  EXPECT_EQ(ended_->code, Errc::peer_lost);
  EXPECT_THAT(ended_->what,
              ::testing::StartsWith("the master has been silent for 1"));
}

TEST_F(NodeActorTest, AfterASuspensionWaitsForTheMasterFirst) {
  pass(5s);
  scheduler_.advance_time(10 * defaults::dead_after); // no process ran
  run();
  EXPECT_FALSE(ended_);
  pass(defaults::dead_after - 1s);
  EXPECT_FALSE(ended_) << "the silence begins when it was woken";
  pass(2s);
  EXPECT_TRUE(ended_);
}

} // namespace
} // namespace troupe::actors
