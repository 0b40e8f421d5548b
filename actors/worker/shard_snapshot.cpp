#include "actors/worker/shard_snapshot.hpp"

#include "config/trace/trace_at.hpp"
#include "plans/recovery/snapshot_planes.hpp"

#include <fmt/format.h>

#include <vector>

namespace troupe::actors {

namespace {

plans::SnapshotPlaces places_of(const Shard& shard) {
  return {shard.replica, shard.worker->run.plan.cluster};
}

/// Returns the planes that this worker keeps: of its devices, and copies.
std::vector<plans::SnapshotPlace> kept_by(const WorkerContext& worker) {
  const RunDescription& run = worker.run;
  std::vector<plans::SnapshotPlace> kept;
  for (const auto& replica : run.replicas.all)
    if (plans::is_in_snapshots(run.workflow, run.plan, replica))
      for (const auto& place :
           plans::SnapshotPlaces(replica, run.plan.cluster).on(worker.worker))
        kept.push_back(place);
  return kept;
}

/// Copies one file; its worker does not write it meanwhile.
std::uint64_t copy_file(WorkerContext& worker, const SnapshotFile& copy,
                        std::uint64_t id) {
  auto& plane = *worker.exchange.data_plane;
  SnapshotFile source = copy;
  source.place.is_copy = false;
  source.place.worker = worker.run.plan.cluster.worker_of(copy.place.device);
  if (worker.snapshots->has(copy, id))
    return 0;
  const auto bytes = pull_snapshot(
    plane, source, id, worker.snapshots->open_to_write(plane, copy));
  if (bytes == 0)
    throw FailureError({.code = Errc::stale,
                        .who = worker.who,
                        .what = fmt::format(
                          "worker {} does not lend the planes "
                          "of device {}",
                          source.place.worker.value, source.place.device.value),
                        .cause = ""});
  worker.snapshots->lend(plane, copy);
  return bytes;
}

/// Reads the planes of another host; returns false if no worker lends them.
/// Its own memory gets them too: the next failure may be another host's.
bool restore_from_others(Shard& shard, const SnapshotKey& key) {
  auto& snapshots = *shard.worker->snapshots;
  auto& plane = *shard.worker->exchange.data_plane;
  const auto places = places_of(shard).of(shard.rank);
  const SnapshotFile own{places[0], key.slot};
  const bool writes = own.place.device == shard.rank;
  for (std::size_t i = 1; i < places.size(); ++i) {
    const auto file
      = writes ? snapshots.open_to_write(plane, own) : unkept_file();
    if (pull_snapshot(plane, {places[i], key.slot}, key.id, file) == 0
        || !shard.engine->read_planes(file.get(), key.id))
      continue;
    if (writes)
      snapshots.lend(plane, own);
    return true;
  }
  return false;
}

} // namespace

JobThread& snapshot_thread(const Shard& shard) {
  const RunDescription& run = shard.worker->run;
  return plans::planes_come_and_go(run.workflow, run.plan, shard.replica)
           ? *shard.device
           : *shard.worker->threads.snapshots;
}

SnapshotDone snapshot_shard(Shard& shard, StepId step,
                            const SnapshotOrder& order) {
  auto& snapshots = *shard.worker->snapshots;
  auto& plane = *shard.worker->exchange.data_plane;
  const SnapshotFile own{places_of(shard).of(shard.rank)[0], order.key.slot};
  if (own.place.device != shard.rank)
    return {};
  const trace::Span span{snapshot_thread(shard).track(),
                         trace::name("snapshot"), step.value};
  try {
    const auto file = snapshots.open_to_write(plane, own);
    const auto bytes = shard.engine->write_planes(file.get(), order.key.id);
    snapshots.lend(plane, own);
    return {.bytes = bytes, .problem = ""};
  } catch (const FailureError& error) {
    return {.bytes = 0, .problem = to_string(error.failure())};
  }
}

SnapshotDone copy_snapshots(WorkerContext& worker, StepId step,
                            const SnapshotCopyOrder& order) {
  const trace::Span span{worker.threads.snapshots->track(),
                         trace::name("snapshot copy"), step.value};
  SnapshotDone done;
  for (const auto& place : kept_by(worker))
    if (place.is_copy)
      done.bytes += copy_file(worker, {place, order.key.slot}, order.key.id);
  return done;
}

void lend_snapshots(WorkerContext& worker, const SnapshotKey& key) {
  if (!worker.snapshots->find_keeper())
    return;
  for (const auto& place : kept_by(worker))
    worker.snapshots->lend(*worker.exchange.data_plane, {place, key.slot});
}

void restore_shard(Shard& shard, const SnapshotKey& key) {
  auto& snapshots = *shard.worker->snapshots;
  const SnapshotFile own{places_of(shard).of(shard.rank)[0], key.slot};
  if (snapshots.find_keeper()
      && shard.engine->read_planes(snapshots.open(own).get(), key.id))
    return;
  if (restore_from_others(shard, key))
    return;
  throw FailureError({.code = Errc::stale,
                      .who = shard.device->name(),
                      .what = "no host has its planes of the snapshot any more",
                      .cause = ""});
}

} // namespace troupe::actors
