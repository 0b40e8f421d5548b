// The dataflow of a run for people who watch it: calls, the edges that follow
// from their keys, and where the plan runs them. Made from the run folder's
// config.yaml and plan.yaml, so finished runs have it too.
#pragma once

#include "runtime/run_folder.hpp"

#include <string>

namespace troupe::runtime {

/// {"name", "workflow", "steps", "cluster": {..}, "calls": [{"name", "kind",
/// "role", "reads", "writes", "devices", "strategy", "lag"}], "edges":
/// [{"from", "to", "keys"}]}. A run whose files do not read gives its name and
/// the error.
std::string run_graph_json(const RunFolder& folder);

} // namespace troupe::runtime
