// The dataflow of a run for viewers: calls, the edges that follow from their
// keys, and where the plan runs them. The run writes it to a file, so that it
// is available for a finished run, and for one of a user-defined program, which
// alone knows its calls.
#pragma once

#include "plans/plan/execution_plan.hpp"
#include "plans/workflow/workflow.hpp"
#include "runtime/run_folder/run_folder.hpp"

#include <map>
#include <string>
#include <vector>

namespace troupe::runtime {

/// Returns {"workflow", "calls": [{"name", "kind", "role", "reads", "writes",
/// "devices", "strategy", "lag"}], "edges": [{"from", "to", "keys"}]}.
std::string dataflow_json(const plans::Workflow& workflow,
                          const plans::ExecutionPlan& plan);

/// Returns the dataflow in the run folder, with the run's "name"; if it has
/// none, without calls and with "error".
std::string run_graph_json(const RunFolder& folder);

/// Maps each name of a task in traces to the tasks of the same step that it
/// waits for.
using Causes = std::map<std::string, std::vector<std::string>>;
/// Returns the graph's calls and their producers; calls that generate also wait
/// for the step's move. Empty if the folder has no dataflow.
Causes run_causes(const RunFolder& folder);

/// Maps each call to its kind: generate, inference, train or function.
using CallKinds = std::map<std::string, std::string>;
/// Returns the graph's calls; empty if the folder has no dataflow.
CallKinds run_call_kinds(const RunFolder& folder);

} // namespace troupe::runtime
