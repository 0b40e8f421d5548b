// Checkpoints beside training, in a scheduler that the test drives: devices and
// checkpoint are fakes that answer when the test says so.
#include "actors/master_actor.hpp"
#include "actors/system.hpp"
#include "plans/presets.hpp"

#include <caf/scheduler/test_coordinator.hpp>

#include <gmock/gmock.h>

namespace troupe::actors {
namespace {

using testing::ElementsAre;

/// What the fakes saw, and the answers that they owe.
struct Desk {
  std::vector<std::uint32_t> trained; ///< steps, in order of starting
  std::vector<std::uint32_t> copied;  ///< `next_step` of each save
  std::vector<Answer<SaveCopied>> copies;
  std::vector<Answer<SaveDone>> writes;
};

struct CallFakeState {
  std::string name = "call";
};
CallActor::behavior_type call_fake(Self<CallActor, CallFakeState>, Desk* desk) {
  return {[=](run_atom, const Context& context, const CallTask&) {
            desk->trained.push_back(context.step.value);
            CallDone done;
            done.parts.resize(1);
            return done;
          },
          [](fail_atom, std::uint64_t, const Trouble&) {}};
}

struct DataFakeState {
  std::string name = "data";
};
DataActor::behavior_type data_fake(Self<DataActor, DataFakeState>) {
  return {[](next_atom, const Context&, const NextOrder&) {
    return DataBatch{.rows = {0}, .tokens = {4}};
  }};
}

struct CheckpointFakeState {
  std::string name = "checkpoint";
};
CheckpointActor::behavior_type
checkpoint_fake(Self<CheckpointActor, CheckpointFakeState> self, Desk* desk) {
  return {[=](save_atom, const Context& context, const SaveTask& task) {
            desk->copied.push_back(task.next_step.value);
            desk->copies.emplace_back(self, context);
            return desk->copies.back().promise();
          },
          [=](write_atom, const Context& context, const WriteTask&) {
            desk->writes.emplace_back(self, context);
            return desk->writes.back().promise();
          },
          // delivers in the actor's own handler: the oldest copy or write
          [=](done_atom, std::uint64_t what) {
            if (what == 0) {
              desk->copies.front().deliver({});
              desk->copies.erase(desk->copies.begin());
            } else {
              desk->writes.front().deliver({.folder = "checkpoint"});
              desk->writes.erase(desk->writes.begin());
            }
          },
          [](fail_atom, std::uint64_t, const Trouble&) {}};
}

class MasterSave : public testing::Test {
protected:
  MasterSave() {
    add_message_types(config_);
    config_.set("scheduler.policy", caf::atom("testing"));
    system_ = std::make_unique<caf::actor_system>(config_);
    scheduler_
      = dynamic_cast<caf::scheduler::test_coordinator*>(&system_->scheduler());
    MasterSetup setup;
    setup.workflow = plans::sft_workflow({});
    setup.plan = plans::preset("single", setup.workflow, {});
    setup.replicas = plans::replicas_of(setup.workflow, setup.plan);
    setup.graph
      = plans::make_step_graph(setup.workflow, setup.plan, setup.replicas);
    setup.end_step = StepId{4};
    setup.save_every = 1;
    setup.saved = {{setup.replicas.home("actor")}};
    setup.calls["actor_train"] = system_->spawn(call_fake, &desk_);
    setup.data = system_->spawn(data_fake);
    checkpoint_ = system_->spawn(checkpoint_fake, &desk_);
    setup.checkpoint = checkpoint_;
    setup.asks = std::make_shared<AskTable>();
    setup.on_end = [this](const RunEnd& end) { end_ = end; };
    ours_ = {caf::actor_cast<caf::actor_addr>(setup.calls["actor_train"]),
             setup.data.address(), checkpoint_.address()};
    const auto master = system_->spawn(master_actor, std::move(setup));
    ours_.push_back(master.address());
    caf::anon_send(master, start_atom::value);
    run();
  }
  ~MasterSave() override {
    for (const auto& actor : ours_)
      caf::anon_send_exit(actor, caf::exit_reason::kill);
    run();
  }

  void run() { // without the master's clock
    while (scheduler_->try_run_once())
      ;
  }
  void end_copy() {
    caf::anon_send(checkpoint_, done_atom::value, std::uint64_t{0});
    run();
  }
  void end_write() {
    caf::anon_send(checkpoint_, done_atom::value, std::uint64_t{1});
    run();
  }

  Desk desk_;
  caf::actor_system_config config_;
  std::unique_ptr<caf::actor_system> system_;
  caf::scheduler::test_coordinator* scheduler_ = nullptr;
  CheckpointActor checkpoint_;
  std::vector<caf::actor_addr> ours_;
  std::optional<RunEnd> end_;
};

TEST_F(MasterSave, TrainingWaitsForTheCopyAndNotForTheWrite) {
  EXPECT_THAT(desk_.trained, ElementsAre(0));
  EXPECT_THAT(desk_.copied, ElementsAre(1));
  end_copy();
  EXPECT_EQ(desk_.writes.size(), 1u);
  EXPECT_THAT(desk_.trained, ElementsAre(0, 1)) << "beside the write";
}

TEST_F(MasterSave, OneSaveIsUnderWayAtATime) {
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

} // namespace
} // namespace troupe::actors
