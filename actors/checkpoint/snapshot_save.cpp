#include "actors/checkpoint/snapshot_save.hpp"

#include "actors/checkpoint/ask_holders.hpp"
#include "actors/checkpoint/snapshot_copies.hpp"
#include "actors/checkpoint/snapshot_record.hpp"
#include "config/base/log.hpp"
#include "plans/recovery/snapshot_planes.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <utility>

namespace troupe::actors {

namespace {

/// A snapshot in progress; owned by the continuations.
struct RunningSnapshot {
  Context context;
  SaveTask task;
  SnapshotKey key;
  std::function<void(SaveCopied)> on_done;
  std::function<void(const Failure&)> on_failure;
};
using Running = std::shared_ptr<RunningSnapshot>;

/// Returns a number that no other snapshot of the run has.
std::uint64_t snapshot_id(const Context& context, StepId next_step) {
  return std::uint64_t{context.incarnation.value} << 32 | next_step.value;
}

/// Makes no further snapshots: what is wrong, such as full memory or a keeper
/// that does not reply, would delay each step.
void give_up(CheckpointSelf self, const std::string& problem) {
  self->state.snapshots.gave_up = true;
  log::runtime.warn("no snapshots in memory any more: " + problem);
}

SaveCopied made(CheckpointSelf self, const Running& running,
                std::uint64_t bytes) {
  const CheckpointSetup& setup = self->state.setup;
  const SnapshotRecord record{.key = running->key,
                              .plan = setup.snapshots.plan,
                              .state = state_of(setup, running->task)};
  // other nodes have copies of that one; this one they only begin to copy
  const bool copied
    = setup.snapshots.has_copies && !self->state.snapshots.gave_up_copies;
  const auto before = copied ? self->state.snapshots.last : std::nullopt;
  self->state.snapshots.last = record;
  copy_to_other_nodes(self, running->context, running->key);
  return {.bytes = bytes, .snapshot = text_of(record, before)};
}

/// Returns whether the slot that would be overwritten is not needed any more.
bool slot_is_free(CheckpointSelf self) {
  const SnapshotState& snapshots = self->state.snapshots;
  const auto& recorded = self->state.setup.snapshots.recorded;
  return !snapshots.copying
         && (!snapshots.last || *recorded == snapshots.last->key.id);
}

/// Returns the slot that the last snapshot is not in.
std::uint32_t free_slot(CheckpointSelf self) {
  const auto& last = self->state.snapshots.last;
  return last ? plans::next_snapshot_slot(last->key.slot) : 0;
}

void copied_planes(CheckpointSelf self, const Running& running,
                   const std::vector<LocalMeshDone<SnapshotDone>>& copied) {
  std::uint64_t bytes = 0;
  for (const auto& local_mesh : copied)
    for (const auto& part : local_mesh.parts) {
      if (!part.problem.empty()) {
        give_up(self, part.problem);
        return running->on_done({});
      }
      bytes += part.bytes;
    }
  running->on_done(made(self, running, bytes));
}

void copy_planes(CheckpointSelf self, const Running& running) {
  const CheckpointSetup& setup = self->state.setup;
  std::vector<LocalMeshActor> targets;
  std::vector<LocalMeshOrder<SnapshotOrder>> orders;
  std::vector<AskSpec> specs;
  for (const auto& [replica, local_meshes] : setup.snapshots.local_meshes)
    for (const LocalMesh& local_mesh : local_meshes) {
      targets.push_back(local_mesh.actor);
      orders.push_back(
        part_of(MeshOrder<SnapshotOrder>{.orders = {{running->key}}},
                local_mesh)
          .value());
      specs.push_back(
        {.name = fmt::format("snapshot of {} on {}",
                             setup.replicas[replica].name(), local_mesh.name),
         .worker = local_mesh.worker});
    }
  ask_all<LocalMeshDone<SnapshotDone>>(
    self, targets, snapshot_atom::value, running->context, std::move(orders),
    std::move(specs),
    [=](const std::vector<LocalMeshDone<SnapshotDone>>& copied) {
      copied_planes(self, running, copied);
    },
    running->on_failure);
}

void write_rows(CheckpointSelf self, const Running& running) {
  ask_holders<WriteDone>(
    self, running->task, running->context, write_atom::value,
    [=](WorkerId worker, const std::vector<RowSet>&) {
      return WriteRowsOrder{
        snapshot_rows_file(self->state.setup.run_folder, running->key, worker)
          .string()};
    },
    "write snapshot of",
    [=](const std::vector<WriteDone>&) { copy_planes(self, running); },
    running->on_failure);
}

} // namespace

void begin_snapshots(CheckpointSelf self) {
  const auto& setup = self->state.setup.snapshots;
  if (!setup.loaded)
    return;
  self->state.snapshots.last = setup.loaded;
  copy_to_other_nodes(self,
                      {.flow = 0,
                       .step = StepId{setup.loaded->state.next_step.value - 1},
                       .incarnation = setup.incarnation},
                      setup.loaded->key);
}

void make_snapshot(CheckpointSelf self, const Context& context,
                   const SaveTask& task,
                   std::function<void(SaveCopied)> on_done,
                   std::function<void(const Failure&)> on_failure) {
  if (self->state.snapshots.gave_up || !slot_is_free(self))
    return on_done({});
  auto running = std::make_shared<RunningSnapshot>();
  running->context = context;
  running->task = task;
  running->key
    = {.id = snapshot_id(context, task.next_step), .slot = free_slot(self)};
  running->on_done = std::move(on_done);
  running->on_failure = std::move(on_failure);
  std::error_code error; // the rows' writer names what is wrong
  std::filesystem::create_directories(
    snapshot_record_file(self->state.setup.run_folder).parent_path(), error);
  copy_rows_in_flight(
    self, task, context, "copy for a snapshot",
    [=](const std::vector<CopyDone>&) { write_rows(self, running); },
    running->on_failure);
}

} // namespace troupe::actors
