// Snapshots in the memory of hosts, as arithmetic: which replicas they keep,
// and how many bytes of a host's memory that takes (where: snapshot_places).
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

/// Returns whether a run that continues from a checkpoint needs the replica:
/// the home of a role that changes, and one that is older than home. The others
/// are refreshed by a move before each use.
bool is_saved(const Workflow& workflow, const ExecutionPlan& plan,
              const Replica& replica);

/// Returns whether it is in snapshots: what is saved, and any replica of an EMA
/// role, which changes in place.
bool is_in_snapshots(const Workflow& workflow, const ExecutionPlan& plan,
                     const Replica& replica);

/// Returns whether planes of the replica leave their device between calls: then
/// only the device's own thread may read them.
bool planes_come_and_go(const Workflow& workflow, const ExecutionPlan& plan,
                        const Replica& replica);

/// Bytes that all slots take of the memory of the host that needs most.
struct SnapshotBytes {
  std::uint64_t own = 0;         ///< of its devices
  std::uint64_t with_copies = 0; ///< also of those of another host
};
/// Returns the bytes that snapshots under `plan` take.
SnapshotBytes snapshot_bytes(const Workflow& workflow,
                             const ExecutionPlan& plan,
                             const std::map<std::string, ModelShape>& shapes);

} // namespace troupe::plans
