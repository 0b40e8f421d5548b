#include "actors/worker/shard_snapshot.hpp"

#include "config/trace/trace_at.hpp"
#include "plans/recovery/snapshot_planes.hpp"

#include <fmt/format.h>

namespace troupe::actors {

namespace {

/// Returns the keeper's name of the planes that this shard loads.
std::string snapshot_file(const Shard& shard, const SnapshotKey& key) {
  const auto owner = plans::snapshot_owner(
    shard.replica, shard.worker->run.plan.cluster, shard.rank);
  return fmt::format("replica {} device {} slot {}", shard.replica.id.value,
                     owner.value, key.slot);
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
  const WorkerContext& worker = *shard.worker;
  if (plans::snapshot_owner(shard.replica, worker.run.plan.cluster, shard.rank)
      != shard.rank)
    return {};
  const trace::Span span{snapshot_thread(shard).track(),
                         trace::name("snapshot"), step.value};
  try {
    const auto file = worker.keeper->open(snapshot_file(shard, order.key));
    return {.bytes = shard.engine->write_planes(file.get(), order.key.id),
            .problem = ""};
  } catch (const FailureError& error) {
    return {.bytes = 0, .problem = to_string(error.failure())};
  }
}

void restore_shard(Shard& shard, const SnapshotKey& key) {
  auto& keeper = *shard.worker->keeper;
  if (keeper.find()
      && shard.engine->read_planes(keeper.open(snapshot_file(shard, key)).get(),
                                   key.id))
    return;
  throw FailureError({.code = Errc::stale,
                      .who = shard.device->name(),
                      .what = "the memory of its host has no snapshot any more",
                      .cause = ""});
}

} // namespace troupe::actors
