// Updates of servers as the master sends them: one per version, none for what a
// checkpoint has already.
#include "actors/master/master_actor.hpp"

#include "tests/support/actors/driven_actors.hpp"
#include "tests/support/actors/short_workflow.hpp"
#include <gmock/gmock.h>

namespace troupe::actors {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

/// Steps and versions of the updates that a run sent.
using SentUpdates = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

MoveActor::behavior_type update_fake(Self<MoveActor, FakeState>,
                                     SentUpdates* sent) {
  return {[=](run_atom, const Context& context, const MoveTask& task) {
            sent->emplace_back(context.step.value, task.version.value);
            return MoveDone{.bytes = 1000};
          },
          [](fail_atom, std::uint64_t, const FailureMessage&) {}};
}

plans::Workflow served_workflow() {
  auto workflow = generate_and_train();
  workflow.calls.front().by.servers = true;
  return workflow;
}

CallDone responses() {
  RunDone part;
  part.keys = {"sequence_ids"};
  for (std::uint32_t i = 0; i < 4; ++i)
    part.samples.emplace_back(i);
  return CallDone{.parts = {part}};
}

class WeightTasks : public DrivenActors {
protected:
  MasterSetup setup_with(std::uint32_t lag) {
    MasterSetup setup;
    auto& flow = setup.dataflow;
    flow.workflow = served_workflow();
    const plans::Placement place{.devices = {Rank{0}}};
    flow.plan.calls = {{"actor_gen", place}, {"actor_train", place}};
    if (lag > 0)
      flow.plan.lag["actor_gen"] = lag;
    flow.replicas = plans::replicas_of(flow.workflow, flow.plan);
    flow.graph
      = plans::make_step_graph(flow.workflow, flow.plan, flow.replicas);
    setup.end_step = StepId{3};
    setup.asks = asks_;
    setup.rows.actor = spawn(fake_data, std::vector<std::uint32_t>{4, 5, 6, 7});
    setup.actors.calls["actor_gen"]
      = spawn(fake_call, [](const auto&, const auto&) { return responses(); });
    setup.actors.calls["actor_train"]
      = spawn(fake_call, [](const auto&, const auto&) { return CallDone{}; });
    const auto home = flow.replicas.home("actor");
    setup.actors.moves[{home, home}] = spawn(update_fake, &sent_);
    setup.callbacks.on_step = [this](const StepReport& report) {
      moved_.push_back(report.traffic.moved_bytes);
    };
    setup.callbacks.on_end = [this](const RunEnd& end) { end_ = end; };
    return setup;
  }

  void run(MasterSetup setup) {
    tell(spawn(master_actor, std::move(setup)), start_atom::value);
    ASSERT_TRUE(end_.has_value());
    EXPECT_EQ(end_->kind, RunEnd::Kind::done);
  }

  SentUpdates sent_;
  std::vector<std::uint64_t> moved_;
  std::optional<RunEnd> end_;
};

TEST_F(WeightTasks, EachVersionGoesToServersOnceAndItsBytesAreMoved) {
  run(setup_with(0));
  EXPECT_THAT(sent_, ElementsAre(Pair(0, 0), Pair(1, 1), Pair(2, 2)));
  EXPECT_THAT(moved_, ElementsAre(1000, 1000, 1000));
}

TEST_F(WeightTasks, ServersThatHaveTheVersionGetNone) {
  run(setup_with(1));
  EXPECT_THAT(sent_, ElementsAre(Pair(0, 0), Pair(2, 1), Pair(3, 2)))
    << "steps 0 and 1 generate with the first weights; step 3 before the "
       "last training";
}

TEST_F(WeightTasks, ACallThatACheckpointHasNeedsNoUpdate) {
  auto setup = setup_with(1);
  setup.start.first_step = StepId{1};
  setup.start.in_flight = {{StepId{1}, "actor_gen", responses()}};
  run(std::move(setup));
  EXPECT_THAT(sent_, ElementsAre(Pair(2, 1), Pair(3, 2)))
    << "the weights of version 0 are gone";
}

} // namespace
} // namespace troupe::actors
