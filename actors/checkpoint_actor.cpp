#include "actors/checkpoint_actor.hpp"

#include "actors/checkpoint_files.hpp"

#include <fmt/format.h>

namespace troupe::actors {

namespace {

using CheckpointSelf = Self<CheckpointActor, CheckpointActorState>;
using SaveCallback = std::function<void(Result<SaveDone>)>;

/// A save under way; lives in the continuations.
struct RunningSave {
  Context context;
  SaveTask task;
  std::filesystem::path temporary;
  SaveCallback callback;
};

CheckpointState state_of(const CheckpointSetup& setup, const SaveTask& task) {
  CheckpointState state;
  state.next_step = StepId{task.step.value + 1};
  state.run_id = setup.run_id;
  for (std::size_t i = 0; i < task.replicas.size(); ++i)
    state.versions[setup.replicas[task.replicas[i]].name()]
      = task.versions[i].value;
  for (const auto& carried : task.carried)
    state.carried[carried.name] = carried.value.number();
  return state;
}

WriteOrder write_order(const CheckpointSetup& setup, const RunningSave& save,
                       ReplicaId id) {
  const auto& replica = setup.replicas[id];
  WriteOrder order;
  order.folder = weights_folder(save.temporary, replica.role, replica.name(),
                                replica.home);
  if (replica.home && setup.workflow.role(replica.role).trained)
    order.state_file = optimizer_file(save.temporary, replica.role);
  return order;
}

void commit_save(CheckpointSelf self, const std::shared_ptr<RunningSave>& save,
                 const std::vector<WriteDone>& written) {
  const auto& setup = self->state.setup;
  std::uint64_t bytes = 0;
  for (const auto& part : written)
    bytes += part.bytes;
  run_job<SaveDone>(
    *self->state.thread, "checkpoint", save->callback,
    [save, bytes, state = state_of(setup, save->task), keep = setup.keep] {
      return SaveDone{commit_checkpoint(save->temporary, state, keep), bytes};
    });
}

void write_parts(CheckpointSelf self,
                 const std::shared_ptr<RunningSave>& save) {
  const auto& setup = self->state.setup;
  std::vector<ShardActor> targets;
  std::vector<WriteOrder> orders;
  std::vector<AskSpec> specs;
  for (const auto id : save->task.replicas) {
    const Member& writer = setup.writers.at(id);
    targets.push_back(writer.shard);
    orders.push_back(write_order(setup, *save, id));
    specs.push_back(
      {.name
       = fmt::format("write {} on {}", setup.replicas[id].name(), writer.name),
       .worker = writer.worker,
       .deadline = {}});
  }
  ask_all<WriteDone>(
    self, targets, write_atom::value, save->context, std::move(orders),
    std::move(specs),
    [self, save](const std::vector<WriteDone>& written) {
      commit_save(self, save, written);
    },
    [save](const Failure& failure) { save->callback(failure); });
}

caf::result<SaveDone> save(CheckpointSelf self, const Context& context,
                           const SaveTask& task) {
  Answer<SaveDone> answer{self, context};
  auto running = std::make_shared<RunningSave>();
  running->context = context;
  running->task = task;
  running->callback = self->state.open.open(self, answer);
  try {
    running->temporary = begin_checkpoint(self->state.setup.run_folder,
                                          StepId{task.step.value + 1});
    write_parts(self, running);
  } catch (const std::exception& error) {
    running->callback(to_failure(error, "checkpoint"));
  }
  return answer.promise();
}

} // namespace

CheckpointActor::behavior_type checkpoint_actor(CheckpointSelf self,
                                                CheckpointSetup setup) {
  self->state.asks = Asks{setup.asks};
  self->state.setup = std::move(setup);
  self->state.thread = std::make_shared<DeviceThread>("checkpoint");
  return {
    [=](save_atom, const Context& context, const SaveTask& task) {
      return save(self, context, task);
    },
    [=](done_atom, std::uint64_t id) { self->state.open.finish(id); },
    [=](fail_atom, std::uint64_t id, const Trouble& trouble) {
      self->state.asks.fail(id, to_failure(trouble));
    },
  };
}

} // namespace troupe::actors
