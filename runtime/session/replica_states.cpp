#include "runtime/session/replica_states.hpp"

#include "actors/checkpoint/checkpoint_files.hpp"
#include "plans/recovery/snapshot_planes.hpp"
#include "plans/weights/residency.hpp"
#include "plans/workflow/frozen_roles.hpp"

#include <filesystem>

namespace troupe::runtime {

namespace {

/// Returns by how many versions a replica is older than home between two steps:
/// a move waits for the calls that lag, so a lagged replica has the previous
/// version.
std::uint32_t lag_of(const RunBasis& basis, const plans::Replica& replica) {
  return plans::is_lagged(basis.workflow, basis.run.work.plan, replica) ? 1 : 0;
}

/// Makes `order` load a replica of a role that changes from the checkpoint.
void load_from_checkpoint(const RunBasis& basis, const plans::Replica& replica,
                          actors::LoadOrder& order) {
  const PreparedRun& run = basis.run;
  const auto& role = basis.workflow.role(replica.role);
  const auto& checkpoint = *run.attempt.checkpoint;
  const bool home_version
    = replica.home || role.ema || order.version == Version{run.steps.first};
  order.folder = actors::weights_folder(checkpoint, replica.role,
                                        replica.name(), home_version)
                   .string();
  const auto state = actors::optimizer_file(checkpoint, replica.role);
  if (home_version && (role.trained || std::filesystem::exists(state)))
    order.state_file = state.string();
}

/// Makes `order` load what the snapshot holds of a role that changes; other
/// replicas of the role wait for a move.
void load_from_snapshot(const RunBasis& basis, const plans::Replica& replica,
                        actors::LoadOrder& order) {
  if (is_loaded(basis, replica))
    order.snapshot = basis.run.attempt.snapshot->key;
  else
    order.shape_only = true;
}

/// Returns whether nothing but the replica's calls will read its weights. Both
/// `doctor` and `convert` read those of any role.
bool is_frozen(const RunBasis& basis, const plans::Replica& replica) {
  const auto mode = basis.run.mode();
  return mode != RunMode::move_check && mode != RunMode::convert
         && plans::weights_of_role(basis.workflow, replica.role)
              == plans::RoleWeights::frozen;
}

} // namespace

Version first_version(const RunBasis& basis, const plans::Replica& replica) {
  return plans::version_for(basis.workflow.role(replica.role),
                            StepId{basis.run.steps.first},
                            lag_of(basis, replica));
}

bool is_loaded(const RunBasis& basis, const plans::Replica& replica) {
  if (basis.run.attempt.snapshot && basis.workflow.role(replica.role).changes())
    return plans::is_in_snapshots(basis.workflow, basis.plan, replica);
  return !plans::is_dropped(basis.workflow, basis.plan, replica);
}

std::vector<actors::LoadSpec> load_specs(const RunBasis& basis) {
  const PreparedRun& run = basis.run;
  std::vector<actors::LoadSpec> specs;
  for (const auto& replica : basis.replicas.all) {
    actors::LoadOrder order;
    const bool waits = !is_loaded(basis, replica);
    order.version = first_version(basis, replica);
    order.folder = run.work.settings.models.at(replica.role).path;
    order.shape_only
      = waits || (run.mode() == RunMode::move_check && !replica.home);
    order.frozen = is_frozen(basis, replica);
    const auto& role = basis.workflow.role(replica.role);
    if (role.changes() && run.attempt.snapshot)
      load_from_snapshot(basis, replica, order);
    else if (role.changes() && run.attempt.checkpoint)
      load_from_checkpoint(basis, replica, order);
    specs.push_back({replica.id, order});
  }
  return specs;
}

std::vector<actors::SavedReplica> saved_replicas(const RunBasis& basis) {
  std::vector<actors::SavedReplica> saved;
  for (const auto& replica : basis.replicas.all) {
    const bool converted = basis.run.mode() == RunMode::convert && replica.home;
    if (converted || plans::is_saved(basis.workflow, basis.plan, replica))
      saved.push_back({replica.id, lag_of(basis, replica)});
  }
  return saved;
}

} // namespace troupe::runtime
