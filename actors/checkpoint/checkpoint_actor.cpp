#include "actors/checkpoint/checkpoint_actor.hpp"

#include "actors/checkpoint/ask_holders.hpp"
#include "actors/checkpoint/best_checkpoint.hpp"
#include "actors/checkpoint/snapshot_save.hpp"

#include <fmt/format.h>

namespace troupe::actors {

CheckpointState state_of(const CheckpointSetup& setup, const SaveTask& task) {
  CheckpointState state;
  state.next_step = task.next_step;
  state.run_id = setup.run_id;
  for (std::size_t i = 0; i < task.replicas.size(); ++i)
    state.versions[setup.replicas[task.replicas[i]].name()]
      = task.versions[i].value;
  for (const auto& carried : task.carried)
    state.carried[carried.name] = carried.value.number();
  state.in_flight = task.in_flight;
  return state;
}

namespace {

using SaveCallback = std::function<void(Result<SaveDone>)>;

/// A write in progress; owned by the continuations.
struct RunningWrite {
  Context context;
  SaveTask task;
  std::filesystem::path temporary;
  SaveCallback callback;
};

/// Removes the files of a checkpoint that fails: they may be what filled the
/// disk.
SaveCallback or_removed(const std::filesystem::path& temporary,
                        SaveCallback callback) {
  return [=](Result<SaveDone> result) {
    std::error_code ignored;
    if (std::holds_alternative<Failure>(result))
      std::filesystem::remove_all(temporary, ignored);
    callback(std::move(result));
  };
}

/// Returns whether the optimizer of this replica is saved too.
bool saves_moments(const CheckpointSetup& setup,
                   const plans::Replica& replica) {
  return replica.home && setup.workflow.role(replica.role).trained;
}

/// Returns the order to write a replica. Folders of a role are for users, in
/// the type that the settings have; those of other replicas are for a resumed
/// run, bit for bit.
WriteOrder write_order(const CheckpointSetup& setup, const RunningWrite& write,
                       const plans::Replica& replica) {
  WriteOrder order;
  order.folder = weights_folder(write.temporary, replica.role, replica.name(),
                                replica.home);
  const auto store
    = replica.home ? setup.stores.at(replica.role) : models::HfStore{};
  order.dtype = store.dtype;
  order.max_shard_bytes = store.max_shard_bytes;
  const bool ema = setup.workflow.role(replica.role).ema.has_value();
  if (saves_moments(setup, replica) || (ema && store.dtype != DType::f32))
    order.state_file = optimizer_file(write.temporary, replica.role);
  return order;
}

/// Sends orders to the writer of every replica that is saved.
template <class Done, class Atom, class Order, class OnAll, class OnFailure>
void ask_writers(CheckpointSelf self, const SaveTask& task,
                 const Context& context, Atom atom, std::vector<Order> orders,
                 const char* what, OnAll on_all, OnFailure on_failure) {
  const auto& setup = self->state.setup;
  std::vector<ShardActor> targets;
  std::vector<AskSpec> specs;
  for (const auto id : task.replicas) {
    const Writer& writer = setup.writers.at(id);
    targets.push_back(writer.shard);
    specs.push_back(
      {.name = fmt::format("{} {} on {}", what, setup.replicas[id].name(),
                           writer.name),
       .worker = writer.worker});
  }
  ask_all<Done>(self, targets, atom, context, std::move(orders),
                std::move(specs), on_all, on_failure);
}

void commit_save(CheckpointSelf self,
                 const std::shared_ptr<RunningWrite>& write,
                 const std::vector<WriteDone>& written) {
  const auto& setup = self->state.setup;
  std::uint64_t bytes = 0;
  std::vector<FileWritten> files;
  for (const auto& part : written) {
    bytes += part.bytes;
    files.insert(files.end(), part.files.begin(), part.files.end());
  }
  run_job<SaveDone>(*self->state.thread, "checkpoint", write->callback,
                    [write, bytes, files = std::move(files),
                     state = state_of(setup, write->task), keep = setup.keep,
                     best = setup.best] {
                      if (best) // must not be removed now
                        best->refresh();
                      const auto folder = commit_checkpoint(write->temporary,
                                                            state, keep, files);
                      if (best)
                        best->refresh();
                      return SaveDone{folder, bytes};
                    });
}

void copy_replicas(CheckpointSelf self, const Context& context,
                   const SaveTask& task, Reply<SaveCopied> reply,
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
      reply.deliver(done);
    },
    [=](const Failure& failure) mutable { reply.fail(failure); });
}

void copy_checkpoint(CheckpointSelf self, const Context& context,
                     const SaveTask& task, Reply<SaveCopied> reply,
                     const SnapshotRecordText& snapshot) {
  TROUPE_CHECK(!self->state.copied, "one save at a time");
  copy_rows_in_flight(
    self, task, context, "copy",
    [=](const std::vector<CopyDone>& copied) {
      SaveCopied done{.bytes = 0, .snapshot = snapshot};
      for (const auto& part : copied)
        done.bytes += part.bytes;
      copy_replicas(self, context, task, reply, done);
    },
    [=](const Failure& failure) mutable { reply.fail(failure); });
}

caf::result<SaveCopied> copy(CheckpointSelf self, const Context& context,
                             const SaveTask& task) {
  Reply<SaveCopied> reply{self, context};
  if (!task.snapshot) {
    copy_checkpoint(self, context, task, reply, {});
    return reply.promise();
  }
  make_snapshot(
    self, context, task,
    [=](const SaveCopied& done) mutable {
      if (task.checkpoint)
        copy_checkpoint(self, context, task, reply, done.snapshot);
      else
        reply.deliver(done);
    },
    [=](const Failure& failure) mutable { reply.fail(failure); });
  return reply.promise();
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
  Reply<SaveDone> reply{self, context};
  auto running = std::make_shared<RunningWrite>();
  running->context = context;
  running->task = std::exchange(self->state.copied, std::nullopt).value();
  running->callback = self->state.open.open(self, reply);
  try {
    running->temporary
      = begin_checkpoint(self->state.setup.run_folder, running->task.next_step,
                         context.incarnation);
    running->callback = or_removed(running->temporary, running->callback);
    write_parts(self, running);
  } catch (const std::exception& error) {
    running->callback(to_failure(error, "checkpoint"));
  }
  return reply.promise();
}

} // namespace

CheckpointActor::behavior_type checkpoint_actor(CheckpointSelf self,
                                                CheckpointSetup setup) {
  self->state.asks = Asks{setup.asks};
  self->state.setup = std::move(setup);
  self->state.thread = std::make_shared<JobThread>("checkpoint");
  begin_snapshots(self);
  return {
    [=](save_atom, const Context& context, const SaveTask& task) {
      return copy(self, context, task);
    },
    [=](write_atom, const Context& context, const WriteTask&) {
      return write(self, context);
    },
    [=](done_atom, std::uint64_t id) { self->state.open.finish(id); },
    [=](fail_atom, std::uint64_t id, const FailureMessage& message) {
      self->state.asks.fail(id, to_failure(message));
    },
  };
}

} // namespace troupe::actors
