// Chunks that share a running batch, in a scheduler that the test drives: a
// fake generation replies only once it has all chunks, the last one first.
#include "actors/master/master_actor.hpp"

#include "tests/support/actors/driven_actors.hpp"
#include "tests/support/actors/short_workflow.hpp"
#include <gmock/gmock.h>

namespace troupe::actors {
namespace {

using ::testing::ElementsAre;

constexpr std::uint32_t num_chunks = 2;

struct Waiting {
  CallTask task;
  caf::typed_response_promise<CallDone> promise;
};
struct GenerationState {
  std::string name = "generation";
  std::vector<Waiting> waiting;
};

CallActor::behavior_type
generation(Self<CallActor, GenerationState> self,
           std::vector<std::vector<std::uint32_t>>* joined) {
  return {[=](run_atom, const Context&,
              const CallTask& task) -> caf::result<CallDone> {
            auto& waiting = self->state.waiting;
            joined->push_back(task.joined.tasks);
            waiting.push_back({task, self->make_response_promise<CallDone>()});
            const auto promise = waiting.back().promise;
            if (waiting.size() < num_chunks)
              return promise;
            for (; !waiting.empty(); waiting.pop_back()) {
              auto& chunk = waiting.back();
              RunDone part;
              part.keys = {"sequence_ids"};
              for (std::uint32_t i = 0; i < chunk.task.count; ++i)
                part.samples.emplace_back(chunk.task.first.value + i);
              CallDone done;
              done.parts = {part};
              chunk.promise.deliver(std::move(done));
            }
            return promise;
          },
          [](fail_atom, std::uint64_t, const FailureMessage&) {}};
}

class MasterChunks : public DrivenActors {};

TEST_F(MasterChunks, JoinedChunksAreSentTogetherAndEndInOrder) {
  std::vector<std::vector<std::uint32_t>> joined;
  std::vector<std::string> ended;
  std::optional<RunEnd> end;

  MasterSetup setup;
  setup.dataflow.workflow = generate_and_train();
  const plans::Placement place{.devices = {Rank{0}}};
  setup.dataflow.plan.calls["actor_gen"] = place;
  setup.dataflow.plan.calls["actor_gen"].chunks = num_chunks;
  setup.dataflow.plan.calls["actor_train"] = place;
  setup.dataflow.replicas
    = plans::replicas_of(setup.dataflow.workflow, setup.dataflow.plan);
  setup.dataflow.graph = plans::make_step_graph(
    setup.dataflow.workflow, setup.dataflow.plan, setup.dataflow.replicas);
  setup.end_step = StepId{2};
  setup.asks = asks_;
  setup.rows.actor = spawn(fake_data, std::vector<std::uint32_t>{4, 5, 6, 7});
  setup.actors.calls["actor_gen"] = spawn(generation, &joined);
  setup.actors.calls["actor_train"]
    = spawn(fake_call, [](const auto&, const auto&) { return CallDone{}; });
  setup.callbacks.on_step = [&](const StepReport& report) {
    for (const auto& task : report.tasks)
      ended.push_back(task.name);
  };
  setup.callbacks.on_end = [&](const RunEnd& reached) { end = reached; };
  tell(spawn(master_actor, std::move(setup)), start_atom::value);
  ASSERT_TRUE(end.has_value()) << "it waits for a chunk that was not sent";
  EXPECT_EQ(end->kind, RunEnd::Kind::done);
  const std::vector<std::uint32_t> both = {0, 1};
  EXPECT_THAT(joined, ElementsAre(both, both, both, both));
  EXPECT_THAT(ended,
              ElementsAre("actor_gen[0]", "actor_gen[1]", "actor_train",
                          "actor_gen[0]", "actor_gen[1]", "actor_train"));
}

} // namespace
} // namespace troupe::actors
