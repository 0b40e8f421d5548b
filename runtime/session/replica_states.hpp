// Initial states of replicas and what a checkpoint keeps of them: versions, the
// files they are loaded from, those that a resumed run must find again.
#pragma once

#include "actors/checkpoint/checkpoint_actor.hpp"
#include "actors/master/master_actor.hpp"
#include "actors/membership/setup_actor.hpp"
#include "runtime/session/run_basis.hpp"

#include <vector>

namespace troupe::runtime {

/// Returns the version of a replica before the first step of the attempt.
Version first_version(const RunBasis& basis, const plans::Replica& replica);

/// Returns whether the replica has weights before the first step of the
/// attempt; others wait for a move.
bool is_loaded(const RunBasis& basis, const plans::Replica& replica);

/// Returns what every replica loads: its role's folder, or its part of the
/// checkpoint.
std::vector<actors::LoadSpec> load_specs(const RunBasis& basis);

/// Returns the replicas of a checkpoint (plans::is_saved). For `convert`, all
/// that is loaded is saved.
std::vector<actors::SavedReplica> saved_replicas(const RunBasis& basis);

} // namespace troupe::runtime
