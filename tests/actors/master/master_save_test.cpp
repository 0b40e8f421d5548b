// Checkpoints during training, in a scheduler that the test drives: devices and
// checkpoint are fakes that reply when the test says so.
#include "actors/master/master_actor.hpp"
#include "config/settings/settings.hpp"
#include "plans/presets/presets.hpp"

#include "tests/support/actors/driven_actors.hpp"
#include <gmock/gmock.h>

namespace troupe::actors {
namespace {

using ::testing::ElementsAre;

/// The requests to the fakes, and their outstanding replies.
struct Desk {
  std::vector<std::uint32_t> trained; ///< steps in the order in which they
                                      ///< started
  std::vector<std::uint32_t> copied;  ///< `next_step` of each save
  std::vector<Reply<SaveCopied>> copies;
  std::vector<Reply<SaveDone>> writes;
};

CheckpointActor::behavior_type
checkpoint_fake(Self<CheckpointActor, FakeState> self, Desk* desk) {
  return {[=](save_atom, const Context& context, const SaveTask& task) {
            desk->copied.push_back(task.next_step.value);
            desk->copies.emplace_back(self, context);
            return desk->copies.back().promise();
          },
          [=](write_atom, const Context& context, const WriteTask&) {
            desk->writes.emplace_back(self, context);
            return desk->writes.back().promise();
          },
          // delivers the oldest copy or write in the actor's own handler
          [=](done_atom, std::uint64_t what) {
            if (what == 0) {
              desk->copies.front().deliver({});
              desk->copies.erase(desk->copies.begin());
            } else {
              desk->writes.front().deliver({.folder = "checkpoint"});
              desk->writes.erase(desk->writes.begin());
            }
          },
          [](fail_atom, std::uint64_t, const FailureMessage&) {}};
}

class MasterSave : public DrivenActors {
protected:
  explicit MasterSave(std::uint32_t save_every = 1,
                      std::uint32_t snapshot_every = 0) {
    MasterSetup setup;
    setup.dataflow.workflow = plans::sft_workflow({});
    setup.dataflow.plan = plans::preset("single", setup.dataflow.workflow, {});
    setup.dataflow.replicas
      = plans::replicas_of(setup.dataflow.workflow, setup.dataflow.plan);
    setup.dataflow.graph = plans::make_step_graph(
      setup.dataflow.workflow, setup.dataflow.plan, setup.dataflow.replicas);
    setup.end_step = StepId{4};
    setup.save.every = save_every;
    setup.save.snapshot_every = snapshot_every;
    setup.save.replicas = {{setup.dataflow.replicas.home("actor")}};
    setup.actors.calls["actor_train"]
      = spawn(fake_call, [this](const Context& context, const CallTask&) {
          desk_.trained.push_back(context.step.value);
          return CallDone{.parts = {RunDone{}}};
        });
    setup.rows.actor = spawn(fake_data, std::vector<std::uint32_t>{4});
    setup.save.actor = checkpoint_;
    setup.asks = asks_;
    setup.callbacks.on_end = [this](const RunEnd& end) { end_ = end; };
    tell(spawn(master_actor, std::move(setup)), start_atom::value);
  }

  void end_copy() {
    tell(checkpoint_, done_atom::value, std::uint64_t{0});
  }
  void end_write() {
    tell(checkpoint_, done_atom::value, std::uint64_t{1});
  }

  Desk desk_;
  CheckpointActor checkpoint_ = spawn(checkpoint_fake, &desk_);
  std::optional<RunEnd> end_;
};

TEST_F(MasterSave, TrainingWaitsForTheCopyButNotForTheWrite) {
  EXPECT_THAT(desk_.trained, ElementsAre(0));
  EXPECT_THAT(desk_.copied, ElementsAre(1));
  end_copy();
  EXPECT_EQ(desk_.writes.size(), 1u);
  EXPECT_THAT(desk_.trained, ElementsAre(0, 1)) << "beside the write";
}

TEST_F(MasterSave, OnlyOneSaveIsUnderWayAtATime) {
  end_copy();
  EXPECT_THAT(desk_.copied, ElementsAre(1)) << "the write is not done";
  EXPECT_THAT(desk_.trained, ElementsAre(0, 1)) << "would overwrite weights";
  end_write();
  EXPECT_THAT(desk_.copied, ElementsAre(1, 2));
}

TEST_F(MasterSave, TheRunEndsWithItsLastCheckpoint) {
  for (int i = 0; i < 4; ++i) {
    end_copy();
    EXPECT_FALSE(end_.has_value());
    end_write();
  }
  ASSERT_TRUE(end_.has_value());
  EXPECT_EQ(end_->kind, RunEnd::Kind::done);
  EXPECT_EQ(end_->checkpoint, "checkpoint");
  EXPECT_THAT(desk_.trained, ElementsAre(0, 1, 2, 3));
}

class MasterSnapshot : public MasterSave {
protected:
  MasterSnapshot() : MasterSave(/*save_every=*/2, /*snapshot_every=*/1) {}
};

TEST_F(MasterSnapshot, TrainingWaitsForItAndNothingIsWritten) {
  EXPECT_THAT(desk_.trained, ElementsAre(0));
  EXPECT_THAT(desk_.copied, ElementsAre(1));
  end_copy();
  EXPECT_TRUE(desk_.writes.empty());
  EXPECT_THAT(desk_.trained, ElementsAre(0, 1));
}

TEST_F(MasterSnapshot, IsMadeTogetherWithACheckpoint) {
  end_copy();
  EXPECT_THAT(desk_.copied, ElementsAre(1, 2));
  end_copy();
  EXPECT_EQ(desk_.writes.size(), 1u);
  EXPECT_THAT(desk_.copied, ElementsAre(1, 2, 3)) << "beside the write";
}

} // namespace
} // namespace troupe::actors
