// Snapshots in the memory of hosts, as arithmetic: which replicas they keep,
// which device copies planes that several hold, and how many bytes of a host's
// memory that takes.
#pragma once

#include "config/model/model_shape.hpp"
#include "plans/plan/execution_plan.hpp"
#include "plans/weights/replicas.hpp"

#include <cstdint>
#include <map>
#include <string>

namespace troupe::plans {

/// Two of them take turns, so that one is always whole.
inline constexpr std::uint32_t num_snapshot_slots = 2;

/// Returns the slot that is written after `slot`.
constexpr std::uint32_t next_snapshot_slot(std::uint32_t slot) {
  return (slot + 1) % num_snapshot_slots;
}

/// Returns the device of `replica` whose planes `device` loads from a snapshot:
/// on one node the dp ranks of a replica without ZeRO hold the same, so the
/// first of them copies for all.
Rank snapshot_owner(const Replica& replica, const Cluster& cluster,
                    Rank device);

/// Returns whether a run that continues needs the replica: the home of a
/// trained role, one that is older than home, any of an EMA role. The others
/// are refreshed by a move before each use.
bool is_in_snapshots(const Workflow& workflow, const ExecutionPlan& plan,
                     const Replica& replica);

/// Returns whether planes of the replica leave their device between calls: then
/// only the device's own thread may read them.
bool planes_come_and_go(const Workflow& workflow, const ExecutionPlan& plan,
                        const Replica& replica);

/// Returns the bytes that all slots take of the memory of the host that needs
/// most.
std::uint64_t snapshot_bytes(const Workflow& workflow,
                             const ExecutionPlan& plan,
                             const std::map<std::string, ModelShape>& shapes);

} // namespace troupe::plans
