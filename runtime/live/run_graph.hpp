// The dataflow of a run for people who watch it: calls, the edges that follow
// from their keys, and where the plan runs them. Made from the run folder's
// config.yaml and plan.yaml, so finished runs have it too.
#pragma once

#include "runtime/run_folder.hpp"

#include <map>
#include <string>
#include <vector>

namespace troupe::runtime {

/// {"name", "workflow", "steps", "cluster": {..}, "calls": [{"name", "kind",
/// "role", "reads", "writes", "devices", "strategy", "lag"}], "edges":
/// [{"from", "to", "keys"}]}. A run whose files do not read gives its name and
/// the error.
std::string run_graph_json(const RunFolder& folder);

/// By each name of a task in traces: the tasks of the same step that it waits
/// for.
using Causes = std::map<std::string, std::vector<std::string>>;
/// The graph's calls and their producers; what generates also waits for the
/// step's move. Empty where a file does not read.
Causes run_causes(const RunFolder& folder);

} // namespace troupe::runtime
