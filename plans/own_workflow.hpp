// A workflow that an own program describes (troupe/workflow.hpp) as calls and
// keys, like a built-in one.
#pragma once

#include "config/workflow_traits.hpp"
#include "plans/workflow.hpp"

namespace troupe::detail {
struct OwnCall;
struct WorkflowParts;
} // namespace troupe::detail

namespace troupe::plans {

/// The name of a call's function, actor or loss in the tables: "w.check".
std::string own_fn(const std::string& workflow, const std::string& call);
/// The call that takes the means of metrics.
inline constexpr const char* metrics_call = "metrics";

/// Throws ConfigError where two calls see a key with different types.
void check_key_types(const detail::WorkflowParts& parts);
/// .. where a call reads a number that no call writes: columns of the data file
/// are texts, ..
void check_sources(const detail::WorkflowParts& parts);
/// .. and where a carried value has no writer, two, or one that is not its
/// reader.
void check_carried(const detail::WorkflowParts& parts);

Workflow own_workflow(const detail::WorkflowParts& parts);
/// `sections` are those of settings that the program added.
WorkflowTraits own_traits(const detail::WorkflowParts& parts,
                          std::vector<std::string> sections);

} // namespace troupe::plans
