#include "runtime/run_folder/checkpoint_fit.hpp"

#include "actors/checkpoint/checkpoint_files.hpp"
#include "config/base/error.hpp"
#include "plans/schedule/step_graph.hpp"
#include "plans/weights/residency.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace troupe::runtime {

namespace {

/// Contents of a checkpoint that are due to lags: calls of later steps by task
/// and number of steps ahead, and replicas by name.
struct LagState {
  std::set<std::pair<std::string, std::uint32_t>> calls;
  std::set<std::string> replicas;

  bool operator==(const LagState&) const = default;
};

LagState needed_by(const plans::Workflow& workflow,
                   const plans::ExecutionPlan& plan) {
  const auto replicas = plans::replicas_of(workflow, plan);
  const auto graph = plans::make_step_graph(workflow, plan, replicas);
  const auto ahead = plans::steps_ahead(graph);
  LagState state;
  for (std::size_t i = 0; i < ahead.size(); ++i) {
    if (graph.tasks[i].kind == plans::TaskKind::update)
      continue; // leaves no rows
    for (std::uint32_t steps = 0; steps < ahead[i]; ++steps)
      state.calls.emplace(graph.tasks[i].name, steps);
  }
  for (const auto& replica : replicas.all)
    if (plans::is_lagged(workflow, plan, replica))
      state.replicas.insert(replica.name());
  return state;
}

/// Returns what a checkpoint holds: of a role that trains, home at the newest
/// version, and the replicas that are older. Names alone are ambiguous: home of
/// one plan may have the name of another plan's replica.
LagState held_by(const actors::CheckpointState& checkpoint) {
  const auto role_of
    = [](const std::string& name) { return name.substr(0, name.find('@')); };
  std::map<std::string, std::uint32_t> newest; ///< per role
  for (const auto& [name, version] : checkpoint.versions)
    newest[role_of(name)] = std::max(newest[role_of(name)], version);
  LagState state;
  for (const auto& [name, version] : checkpoint.versions)
    if (version < newest[role_of(name)])
      state.replicas.insert(name);
  for (const auto& call : checkpoint.in_flight)
    state.calls.emplace(call.task,
                        call.step.value - checkpoint.next_step.value);
  return state;
}

} // namespace

void check_lags_fit(const std::filesystem::path& checkpoint,
                    const plans::Workflow& workflow,
                    const plans::ExecutionPlan& plan) {
  if (held_by(actors::read_checkpoint_state(checkpoint))
      != needed_by(workflow, plan))
    throw ConfigError(
      {checkpoint.string(), 0},
      "is of a run whose plan has other lags, and lags change results; "
      "continue with the plan.yaml of the run folder, or use "
      "run.resume=fresh");
}

} // namespace troupe::runtime
