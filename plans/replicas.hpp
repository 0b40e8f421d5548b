// Which copies of which weights exist: the calls of a role with equal devices
// and strategy share one replica. The home replica is where the role trains, or
// where it is first used; moves refresh the others from it, so their devices
// stand where they keep most of what they hold of it (device_order.hpp). Who
// asks which device has which coordinate asks here, never the plan's placement.
#pragma once

#include "config/ids.hpp"
#include "config/strategy.hpp"
#include "plans/execution_plan.hpp"
#include "plans/workflow.hpp"

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
  std::vector<std::string> calls = {}; ///< in workflow order, at least one

  bool operator==(const Replica&) const = default;
  /// "actor@actor_gen": the role at the replica's first call.
  std::string name() const {
    return role + "@" + calls.front();
  }
};

/// Where it is, as moves and their costs take it.
Placement mesh_of(const Replica& replica);

struct Replicas {
  std::vector<Replica> all = {}; ///< all[id.value].id == id

  const Replica& operator[](ReplicaId id) const {
    return all.at(id.value);
  }
  /// Throws InvariantError for functions and unknown names.
  ReplicaId of_call(std::string_view call) const;
  ReplicaId home(std::string_view role) const;
  /// All replicas of a role, ascending.
  std::vector<ReplicaId> of_role(std::string_view role) const;
};

/// Needs a placement of every call with a role (plan_check proves that). Throws
/// PlanError when the train calls of a role do not share one replica.
Replicas replicas_of(const Workflow& workflow, const ExecutionPlan& plan);

} // namespace troupe::plans
