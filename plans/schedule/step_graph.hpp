// The tasks of one step as templates: task t of step n needs task u of step
// n - steps_back. Three kinds of edges make a step correct
// (docs/scheduling.md): data (keys), version (weights must be there),
// write-after-read (a task that overwrites weights waits for every reader of
// the old ones).
//
// Versions. Training in step n makes version n+1 of a role. A call of a trained
// role with lag k runs in step n on exactly version max(0, n-k) (I4):
// - On the home replica, where the role trains, it runs after the training of
//   step n-k-1 and before that of step n-k. That is legal for every k, but one
//   replica holds one version, so a lag gives no overlap there.
// - On another replica a move delivers the version: the move of step n delivers
//   version n to the target, after training n-1 made it, before training n
//   overwrites it, and after the target's readers of version n-1. A call with
//   lag k reads in step n what the move of step n-k delivered, so the move of
//   step n waits for that call in step n+k-1 (a need with steps_back = 1-k),
//   and generation n+1 then runs in parallel with training n. With one buffer
//   per replica, lags above 1 are kept exactly but overlap no more than lag 1.
// - Calls on one replica may have different lags, and so have the slices of a
//   generation (call_slices.hpp). Slices of equal version, of steps that follow
//   each other, run in a row, the newest step first (slices_in_a_row): each
//   waits for the one before. So a step ends after all of them, and what a
//   checkpoint needs of later steps is done.
// An EMA role (Role::ema) changes in place, as home does: the move of step n
// applies the EMA update with version n+1 of the trained role, on each replica,
// after training n and the EMA role's readers of that step, before training n+1
// and the readers of the next. Its version is that of its last update.
//
// Steps n < k use version 0, which every replica loads at start, so the move of
// step 0 has nothing to send; but replicas dropped after use are not loaded.
#pragma once

#include "config/base/ids.hpp"
#include "plans/weights/replicas.hpp"
#include "plans/workflow/call_slices.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::plans {

/// Kinds of tasks. An update is a move to the servers that generate for a
/// replica (server_updates.hpp). The last three change where a replica's planes
/// are, around its calls (residency.hpp): loaded from host memory, offloaded to
/// it, freed.
enum class TaskKind : std::uint8_t {
  call,
  move,
  update,
  reload,
  offload,
  drop
};

/// Reason why a task waits for another; `order`: the same call one step
/// earlier.
enum class Edge : std::uint8_t { data, version, write_after_read, order };
std::string_view to_string(Edge edge);

struct Need {
  std::uint32_t task = 0;
  std::int32_t steps_back = 0; ///< negative: a task of a later step
  Edge edge = Edge::data;

  bool operator==(const Need&) const = default;
};

/// Samples of a call's task: a chunk of those of the step, or all of a round
/// (Call::rounds); or a slice of the responses of all of them.
struct TaskPart {
  std::uint32_t chunk = 0;
  std::uint32_t chunks = 1;
  std::uint32_t round = 0;
  SlicePart slice = {};
};

struct TaskTemplate {
  std::string name = {}; ///< "actor_gen"; a move: "actor@actor_gen"
  TaskKind kind = TaskKind::call;
  std::string call
    = {}; ///< of a call; or that an update, reload, offload is for
  std::string role = {};                ///< empty for functions
  std::optional<ReplicaId> source = {}; ///< of a move or update
  std::optional<ReplicaId> target = {}; ///< of all but calls
  std::vector<Rank> devices = {};       ///< ascending; empty: on the host
  std::vector<Need> needs = {};
  std::uint32_t lag = 0;
  TaskPart part = {};
  /// For a move: the number of steps between two that send something.
  std::uint32_t every = 1;
  /// For a task that loads planes for a call: the call's task, right before
  /// which it is placed on its devices (total_order.hpp).
  std::optional<std::uint32_t> right_before = {};
};

struct StepGraph {
  std::vector<TaskTemplate> tasks = {};
  std::uint32_t max_lag = 0;

  /// Returns the index of a task by name; throws InvariantError if there is
  /// none.
  std::uint32_t index_of(std::string_view task) const;
};

/// Returns the version that a call or move with `lag` uses in `step` (I4).
constexpr Version version_for(StepId step, std::uint32_t lag) {
  return Version{step.value - std::min(step.value, lag)};
}

/// Returns the same for a role: 0 if frozen; that of an EMA role is older if it
/// is not updated with each version.
Version version_for(const Role& role, StepId step, std::uint32_t lag);

/// Returns for each task how many steps ahead it must be done when a step is.
/// With lags, training in step n waits for calls of later steps that still read
/// the old weights, and for everything that these need. So after step n-1,
/// tasks of steps [n, n + ahead) are certainly done: their weights are gone,
/// and resuming from there needs their rows.
std::vector<std::uint32_t> steps_ahead(const StepGraph& graph);

/// Task `task` (an index into StepGraph::tasks) in one step.
struct TaskRef {
  std::uint32_t task = 0;
  StepId step = {};

  auto operator<=>(const TaskRef&) const = default;
};

/// Makes the graph: calls in workflow order, then moves in replica order, then
/// updates of servers, then tasks that load and offload planes. `lag` of the
/// plan may be set for calls that read a role that changes. Throws PlanError if
/// lags make a step wait for itself (a lagged call that reads what a call of a
/// newer version wrote), or if a step would wait for a training of a later one,
/// so that there is no moment between steps.
StepGraph make_step_graph(const Workflow& workflow, const ExecutionPlan& plan,
                          const Replicas& replicas);

} // namespace troupe::plans
