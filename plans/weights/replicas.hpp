// Which copies of which weights exist: the calls of a role with equal devices
// and strategy share one replica. The home replica is the one that trains the
// role, or else its first use; moves refresh the others from it, so their
// devices are ordered to keep most of what they already hold of it
// (device_order.hpp). Code that needs the coordinate of a device gets it here,
// never from the plan's placement.
#pragma once

#include "config/base/ids.hpp"
#include "config/base/strategy.hpp"
#include "plans/plan/execution_plan.hpp"
#include "plans/workflow/workflow.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace troupe::plans {

struct Replica {
  ReplicaId id = {};
  std::string role = {};
  std::vector<Rank> devices = {}; ///< the i-th has coordinate_of(strategy, i)
  Strategy strategy = {};
  bool home = false;
  bool keep = false;                   ///< the plan keeps it between uses
  std::vector<std::string> calls = {}; ///< in workflow order
  /// Calls in whose conversations it speaks beside the call's own role
  /// (CallActors::with); at least one if `calls` is empty.
  std::vector<std::string> beside = {};

  bool operator==(const Replica&) const = default;
  /// Returns e.g. "actor@actor_gen": the role at the replica's first call.
  std::string name() const {
    return role + "@" + (calls.empty() ? beside : calls).front();
  }
};

/// Returns its devices and strategy, as moves and their costs take them.
Placement mesh_of(const Replica& replica);

struct Replicas {
  std::vector<Replica> all = {}; ///< all[id.value].id == id

  const Replica& operator[](ReplicaId id) const {
    return all.at(id.value);
  }
  /// Returns the replica of a call; throws InvariantError for functions and
  /// unknown names.
  ReplicaId of_call(std::string_view call) const;
  ReplicaId home(std::string_view role) const;
  /// Returns the replica of a second role of conversations that `first` leads:
  /// on the same devices in the same strategy. Throws InvariantError if there
  /// is none.
  ReplicaId beside(const Replica& first, std::string_view role) const;
  /// Returns all replicas of a role, ascending.
  std::vector<ReplicaId> of_role(std::string_view role) const;
};

/// Returns the replicas of a plan. Every call with a role needs a placement
/// (plan_check proves that). Throws PlanError if the train calls of a role do
/// not share one replica.
Replicas replicas_of(const Workflow& workflow, const ExecutionPlan& plan);

} // namespace troupe::plans
