#include "actors/checkpoint_actor.hpp"

#include "actors/best_checkpoint.hpp"
#include "actors/checkpoint_files.hpp"

#include <fmt/format.h>

namespace troupe::actors {

namespace {

using CheckpointSelf = Self<CheckpointActor, CheckpointActorState>;
using SaveCallback = std::function<void(Result<SaveDone>)>;

/// A write under way; lives in the continuations.
struct RunningWrite {
  Context context;
  SaveTask task;
  std::filesystem::path temporary;
  SaveCallback callback;
};

/// A checkpoint that fails leaves nothing behind: its files may be what filled
/// the disk.
SaveCallback or_removed(const std::filesystem::path& temporary,
                        SaveCallback callback) {
  return [=](Result<SaveDone> result) {
    std::error_code ignored;
    if (std::holds_alternative<Failure>(result))
      std::filesystem::remove_all(temporary, ignored);
    callback(std::move(result));
  };
}

CheckpointState state_of(const CheckpointSetup& setup, const SaveTask& task) {
  CheckpointState state;
  state.next_step = task.next_step;
  state.run_id = setup.run_id;
  for (std::size_t i = 0; i < task.replicas.size(); ++i)
    state.versions[setup.replicas[task.replicas[i]].name()]
      = task.versions[i].value;
  for (const auto& carried : task.carried)
    state.carried[carried.name] = carried.value.number();
  state.early = task.early;
  return state;
}

/// Whether the optimizer of this replica is saved too.
bool saves_moments(const CheckpointSetup& setup,
                   const plans::Replica& replica) {
  return replica.home && setup.workflow.role(replica.role).trained;
}

/// Folders of a role are for its users, in the type that they asked for; those
/// of other replicas are for a continued run, to the bit.
WriteOrder write_order(const CheckpointSetup& setup, const RunningWrite& write,
                       const plans::Replica& replica) {
  WriteOrder order;
  order.folder = weights_folder(write.temporary, replica.role, replica.name(),
                                replica.home);
  const auto store
    = replica.home ? setup.stores.at(replica.role) : models::HfStore{};
  order.dtype = static_cast<std::uint8_t>(store.dtype);
  order.max_shard_bytes = store.max_shard_bytes;
  const bool follows = setup.workflow.role(replica.role).follows.has_value();
  if (saves_moments(setup, replica) || (follows && store.dtype != DType::f32))
    order.state_file = optimizer_file(write.temporary, replica.role);
  return order;
}

/// Asks the writer of every replica that is saved.
template <class Done, class Atom, class Order, class OnAll, class OnFailure>
void ask_writers(CheckpointSelf self, const SaveTask& task,
                 const Context& context, Atom atom, std::vector<Order> orders,
                 const char* what, OnAll on_all, OnFailure on_failure) {
  const auto& setup = self->state.setup;
  std::vector<ShardActor> targets;
  std::vector<AskSpec> specs;
  for (const auto id : task.replicas) {
    const Member& writer = setup.writers.at(id);
    targets.push_back(writer.shard);
    specs.push_back(
      {.name = fmt::format("{} {} on {}", what, setup.replicas[id].name(),
                           writer.name),
       .worker = writer.worker});
  }
  ask_all<Done>(self, targets, atom, context, std::move(orders),
                std::move(specs), on_all, on_failure);
}

/// Asks every worker that holds rows of early calls.
template <class Done, class Atom, class MakeOrder, class OnAll, class OnFailure>
void ask_holders(CheckpointSelf self, const SaveTask& task,
                 const Context& context, Atom atom, MakeOrder make_order,
                 const char* what, OnAll on_all, OnFailure on_failure) {
  std::vector<NodeActor> targets;
  std::vector<decltype(make_order(WorkerId{}, std::vector<RowSet>{}))> orders;
  std::vector<AskSpec> specs;
  for (const auto& [worker, sets] : rows_by_holder(task.early)) {
    targets.push_back(self->state.setup.nodes.at(worker.value));
    orders.push_back(make_order(worker, sets));
    specs.push_back(
      {.name = fmt::format("{} rows on worker {}", what, worker.value),
       .worker = worker});
  }
  ask_all<Done>(self, targets, atom, context, std::move(orders),
                std::move(specs), on_all, on_failure);
}

void commit_save(CheckpointSelf self,
                 const std::shared_ptr<RunningWrite>& write,
                 const std::vector<WriteDone>& written) {
  const auto& setup = self->state.setup;
  std::uint64_t bytes = 0;
  for (const auto& part : written)
    bytes += part.bytes;
  run_job<SaveDone>(*self->state.thread, "checkpoint", write->callback,
                    [write, bytes, state = state_of(setup, write->task),
                     keep = setup.keep, best = setup.best] {
                      if (best) // which must not go now
                        best->refresh();
                      const auto folder
                        = commit_checkpoint(write->temporary, state, keep);
                      if (best)
                        best->refresh();
                      return SaveDone{folder, bytes};
                    });
}

void copy_replicas(CheckpointSelf self, const Context& context,
                   const SaveTask& task, Answer<SaveCopied> answer,
                   SaveCopied done) {
  std::vector<CopyOrder> orders;
  for (const auto id : task.replicas)
    orders.push_back(
      {saves_moments(self->state.setup, self->state.setup.replicas[id])});
  ask_writers<CopyDone>(
    self, task, context, copy_atom::value, std::move(orders), "copy",
    [=](const std::vector<CopyDone>& copied) mutable {
      for (const auto& part : copied)
        done.bytes += part.bytes;
      self->state.copied = task;
      answer.deliver(done);
    },
    [=](const Failure& failure) mutable { answer.fail(failure); });
}

caf::result<SaveCopied> copy(CheckpointSelf self, const Context& context,
                             const SaveTask& task) {
  Answer<SaveCopied> answer{self, context};
  TROUPE_CHECK(!self->state.copied, "one save at a time");
  ask_holders<CopyDone>(
    self, task, context, copy_atom::value,
    [](WorkerId, const std::vector<RowSet>& sets) {
      return CopyRowsOrder{sets};
    },
    "copy",
    [=](const std::vector<CopyDone>& copied) {
      SaveCopied done;
      for (const auto& part : copied)
        done.bytes += part.bytes;
      copy_replicas(self, context, task, answer, done);
    },
    [=](const Failure& failure) mutable { answer.fail(failure); });
  return answer.promise();
}

void write_replicas(CheckpointSelf self,
                    const std::shared_ptr<RunningWrite>& write,
                    const std::vector<WriteDone>& rows) {
  std::vector<WriteOrder> orders;
  for (const auto id : write->task.replicas)
    orders.push_back(
      write_order(self->state.setup, *write, self->state.setup.replicas[id]));
  ask_writers<WriteDone>(
    self, write->task, write->context, write_atom::value, std::move(orders),
    "write",
    [self, write, rows](std::vector<WriteDone> written) {
      written.insert(written.end(), rows.begin(), rows.end());
      commit_save(self, write, written);
    },
    [write](const Failure& failure) { write->callback(failure); });
}

void write_parts(CheckpointSelf self,
                 const std::shared_ptr<RunningWrite>& write) {
  ask_holders<WriteDone>(
    self, write->task, write->context, write_atom::value,
    [write](WorkerId worker, const std::vector<RowSet>&) {
      return WriteRowsOrder{rows_file(write->temporary, worker).string()};
    },
    "write",
    [self, write](const std::vector<WriteDone>& rows) {
      write_replicas(self, write, rows);
    },
    [write](const Failure& failure) { write->callback(failure); });
}

caf::result<SaveDone> write(CheckpointSelf self, const Context& context) {
  Answer<SaveDone> answer{self, context};
  auto running = std::make_shared<RunningWrite>();
  running->context = context;
  running->task = std::exchange(self->state.copied, std::nullopt).value();
  running->callback = self->state.open.open(self, answer);
  try {
    running->temporary
      = begin_checkpoint(self->state.setup.run_folder, running->task.next_step);
    running->callback = or_removed(running->temporary, running->callback);
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
      return copy(self, context, task);
    },
    [=](write_atom, const Context& context, const WriteTask&) {
      return write(self, context);
    },
    [=](done_atom, std::uint64_t id) { self->state.open.finish(id); },
    [=](fail_atom, std::uint64_t id, const Trouble& trouble) {
      self->state.asks.fail(id, to_failure(trouble));
    },
  };
}

} // namespace troupe::actors
