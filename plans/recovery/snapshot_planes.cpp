#include "plans/recovery/snapshot_planes.hpp"

#include "plans/recovery/snapshot_places.hpp"
#include "plans/weights/layout.hpp"
#include "plans/weights/residency.hpp"

#include <algorithm>
#include <ranges>

namespace troupe::plans {

namespace {

/// Returns the bytes of a replica's planes in a snapshot.
std::map<Rank, std::uint64_t> bytes_by_device(const Workflow& workflow,
                                              const Replica& replica,
                                              const ModelShape& shape) {
  std::map<Rank, std::uint64_t> bytes;
  const auto saved = trained_parameters(shape);
  const auto add = [&](LayoutKind kind, std::uint64_t planes) {
    const auto layout = make_layout({saved, shape}, replica.strategy,
                                    replica.devices, DType::f32, kind);
    for (const Shard& shard : layout.shards)
      bytes[shard.device] += planes * shard.size_bytes;
  };
  add(LayoutKind::weights, 1);
  if (replica.home && workflow.role(replica.role).trained)
    add(LayoutKind::optimizer, 2);
  return bytes;
}

} // namespace

bool is_saved(const Workflow& workflow, const ExecutionPlan& plan,
              const Replica& replica) {
  return workflow.role(replica.role).changes()
         && (replica.home || is_lagged(workflow, plan, replica));
}

bool is_in_snapshots(const Workflow& workflow, const ExecutionPlan& plan,
                     const Replica& replica) {
  return is_saved(workflow, plan, replica)
         || workflow.role(replica.role).ema.has_value();
}

bool planes_come_and_go(const Workflow& workflow, const ExecutionPlan& plan,
                        const Replica& replica) {
  return is_dropped(workflow, plan, replica)
         || leaves(workflow, plan, replica) != RoleMemory{};
}

SnapshotBytes snapshot_bytes(const Workflow& workflow,
                             const ExecutionPlan& plan,
                             const std::map<std::string, ModelShape>& shapes) {
  std::map<std::uint32_t, SnapshotBytes> by_node;
  const auto replicas = replicas_of(workflow, plan);
  for (const Replica& replica : replicas.all) {
    if (!is_in_snapshots(workflow, plan, replica))
      continue;
    const auto bytes
      = bytes_by_device(workflow, replica, shapes.at(replica.role));
    for (const auto& place : SnapshotPlaces(replica, plan.cluster).all()) {
      auto& node = by_node[place.worker.value / plan.cluster.workers_per_node];
      node.own += place.is_copy ? 0 : bytes.at(place.device);
      node.with_copies += bytes.at(place.device);
    }
  }
  SnapshotBytes most;
  for (const auto& node : std::views::values(by_node)) {
    most.own = std::max(most.own, num_snapshot_slots * node.own);
    most.with_copies
      = std::max(most.with_copies, num_snapshot_slots * node.with_copies);
  }
  return most;
}

} // namespace troupe::plans
