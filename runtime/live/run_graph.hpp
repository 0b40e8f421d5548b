// The dataflow of a run for people who watch it: calls, the edges that follow
// from their keys, and where the plan runs them. The run writes it down, so a
// finished run has it, and one of an own program whose calls only it knows.
#pragma once

#include "plans/execution_plan.hpp"
#include "plans/workflow.hpp"
#include "runtime/run_folder.hpp"

#include <map>
#include <string>
#include <vector>

namespace troupe::runtime {

/// {"workflow", "calls": [{"name", "kind", "role", "reads", "writes",
/// "devices", "strategy", "lag"}], "edges": [{"from", "to", "keys"}]}.
std::string dataflow_json(const plans::Workflow& workflow,
                          const plans::ExecutionPlan& plan);

/// What the run folder has of it, with the run's "name"; where it has none,
/// without calls and with "error".
std::string run_graph_json(const RunFolder& folder);

/// By each name of a task in traces: the tasks of the same step that it waits
/// for.
using Causes = std::map<std::string, std::vector<std::string>>;
/// The graph's calls and their producers; what generates also waits for the
/// step's move. Empty where the folder has no dataflow.
Causes run_causes(const RunFolder& folder);

} // namespace troupe::runtime
