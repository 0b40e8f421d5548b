#include "plans/recovery/snapshot_planes.hpp"

#include "plans/weights/layout.hpp"
#include "plans/weights/residency.hpp"

#include <algorithm>
#include <ranges>

namespace troupe::plans {

Rank snapshot_owner(const Replica& replica, const Cluster& cluster,
                    Rank device) {
  if (replica.strategy.zero != Zero::none)
    return device;
  const auto where = [&](Rank rank) {
    const auto index
      = std::ranges::find(replica.devices, rank) - replica.devices.begin();
    return coordinate_of(replica.strategy, static_cast<std::uint32_t>(index));
  };
  const auto own = where(device);
  Rank owner = device;
  for (const Rank other : replica.devices) {
    const auto its = where(other);
    if (its.pp == own.pp && its.tp == own.tp
        && cluster.node_of(other) == cluster.node_of(device)
        && its.dp < where(owner).dp)
      owner = other;
  }
  return owner;
}

bool is_in_snapshots(const Workflow& workflow, const ExecutionPlan& plan,
                     const Replica& replica) {
  const auto& role = workflow.role(replica.role);
  if (role.ema)
    return true; // changes in place
  return role.trained && (replica.home || has_lag(plan, replica));
}

bool planes_come_and_go(const Workflow& workflow, const ExecutionPlan& plan,
                        const Replica& replica) {
  return is_dropped(workflow, plan, replica)
         || leaves(workflow, plan, replica) != RoleMemory{};
}

std::uint64_t snapshot_bytes(const Workflow& workflow,
                             const ExecutionPlan& plan,
                             const std::map<std::string, ModelShape>& shapes) {
  std::map<std::uint32_t, std::uint64_t> by_node;
  const auto replicas = replicas_of(workflow, plan);
  for (const Replica& replica : replicas.all) {
    if (!is_in_snapshots(workflow, plan, replica))
      continue;
    const auto model = parameters(shapes.at(replica.role));
    const bool trains = replica.home && workflow.role(replica.role).trained;
    const auto add = [&](LayoutKind kind, std::uint64_t planes) {
      const auto layout = make_layout(model, replica.strategy, replica.devices,
                                      DType::f32, kind);
      for (const Shard& shard : layout.shards)
        if (snapshot_owner(replica, plan.cluster, shard.device) == shard.device)
          by_node[plan.cluster.node_of(shard.device)]
            += planes * shard.size_bytes;
    };
    add(LayoutKind::weights, 1);
    if (trains)
      add(LayoutKind::optimizer, 2);
  }
  std::uint64_t most = 0;
  for (const auto bytes : std::views::values(by_node))
    most = std::max(most, bytes);
  return num_snapshot_slots * most;
}

} // namespace troupe::plans
