// Turns a workflow that a user-defined program describes (troupe/workflow.hpp)
// into calls and keys, like a built-in one.
#pragma once

#include "config/settings/workflow_traits.hpp"
#include "plans/workflow/workflow.hpp"

namespace troupe::detail {
struct UserCall;
struct WorkflowParts;
} // namespace troupe::detail

namespace troupe::plans {

/// Returns the name of a call's function, actor or loss in the tables:
/// "w.check".
std::string user_fn(const std::string& workflow, const std::string& call);
/// Name of the call that computes the means of metrics.
inline constexpr const char* metrics_call = "metrics";

/// Throws ConfigError if two calls see a key with different types.
void check_key_types(const detail::WorkflowParts& parts);
/// Throws ConfigError if a call reads a number that no call writes: columns of
/// the data file are texts.
void check_sources(const detail::WorkflowParts& parts);
/// Throws ConfigError if a carried value has no writer, two, or one that is not
/// its reader.
void check_carried(const detail::WorkflowParts& parts);

Workflow user_workflow(const detail::WorkflowParts& parts);
/// Returns the traits; `sections` are the settings sections that the program
/// added.
WorkflowTraits user_traits(const detail::WorkflowParts& parts,
                           std::vector<std::string> sections);

} // namespace troupe::plans
