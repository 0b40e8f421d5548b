// Planes of a shard that leave its device between calls.
#include "actors/worker/shard_residency.hpp"

#include "actors/worker/device_jobs.hpp"
#include "actors/worker/shard_memory.hpp"
#include "config/trace/trace_at.hpp"
#include "models/parallel/parameters.hpp"
#include "plans/schedule/step_graph.hpp"
#include "plans/weights/residency.hpp"

namespace troupe::actors {

namespace {

std::vector<models::Plane> planes_of(plans::RoleMemory memory) {
  std::vector<models::Plane> planes;
  if (memory.offload_weights)
    planes.push_back(models::Plane::weight);
  if (memory.offload_optimizer)
    planes.insert(planes.end(), {models::Plane::m, models::Plane::v});
  return planes;
}

/// Returns the planes that a call needs and no other call has reloaded already,
/// or that no other call still needs.
std::vector<models::Plane> wanted(Shard& shard, plans::TaskKind kind,
                                  const std::vector<models::Plane>& planes) {
  std::vector<models::Plane> changed;
  for (const auto plane : planes) {
    auto& users = shard.users[plane];
    const bool comes = kind == plans::TaskKind::reload;
    users = comes ? users + 1 : users - 1;
    if (users == (comes ? 1U : 0U))
      changed.push_back(plane);
  }
  return changed;
}

/// Offloads planes until moves and checkpoints, which come when this is done,
/// may read them from host memory. Reloads, which only kernels wait for, may be
/// under way meanwhile.
void offload_for_others(models::Engine& engine,
                        std::span<const models::Plane> planes) {
  engine.offload(planes);
  for (const auto plane : planes)
    engine.parameters().finish_offload(plane);
}

const char* word_of(plans::TaskKind kind) {
  switch (kind) {
  case plans::TaskKind::reload:
    return "reload";
  case plans::TaskKind::offload:
    return "offload";
  default:
    return "drop";
  }
}

} // namespace

void begin_residency(Shard& shard) {
  const WorkerContext& worker = *shard.worker;
  shard.engine->offload(planes_of(
    plans::leaves(worker.run.workflow, worker.run.plan, shard.replica)));
  if (plans::is_dropped(worker.run.workflow, worker.run.plan, shard.replica))
    shard.engine->drop_weights();
  count_planes(shard);
}

ResidencyDone move_planes(Shard& shard, StepId step,
                          const ResidencyOrder& order) {
  const WorkerContext& worker = *shard.worker;
  const auto kind = order.kind;
  const trace::Span span{shard.device->track(), trace::name(word_of(kind)),
                         step.value};
  ResidencyDone done;
  done.begin_ns = trace::now_ns();
  begin_peak(shard);
  if (kind == plans::TaskKind::drop) {
    shard.engine->drop_weights();
  } else {
    const auto memory = plans::used_by(
      worker.run.workflow.call(order.call),
      plans::leaves(worker.run.workflow, worker.run.plan, shard.replica));
    const auto planes = wanted(shard, kind, planes_of(memory));
    if (kind == plans::TaskKind::reload)
      shard.engine->reload(planes);
    else
      offload_for_others(*shard.engine, planes);
  }
  done.device_bytes = count_planes(shard);
  done.peaks = peaks_of(shard);
  done.busy_ns = trace::now_ns() - done.begin_ns;
  return done;
}

std::uint64_t count_planes(Shard& shard) {
  const auto bytes = shard.engine->device_bytes();
  trace::counter(shard.device->track(),
                 trace::name("bytes of " + shard.replica.name()),
                 static_cast<double>(bytes));
  trace::counter(shard.device->track(),
                 trace::name("memory of " + shard.device->name()),
                 static_cast<double>(shard.device->memory().now_bytes()));
  return bytes;
}

} // namespace troupe::actors
