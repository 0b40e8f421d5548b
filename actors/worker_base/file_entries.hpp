// Python functions and metrics of a workflow file as entries of the table that
// user-defined C++ functions are in: all that follows (cutting a batch, traces,
// carried values, samples.jsonl) is the same for both; likewise its losses.
// Finds what a key holds: by who writes it, or by its name.
#pragma once

#include "config/settings/workflow_file.hpp"

namespace troupe::actors {

/// Throws ConfigError if it cannot be known what a key holds.
void add_file_entries(const WorkflowFile& file);
/// Adds those of the settings' workflow, if that is a file.
void add_file_entries(const Settings& settings);

} // namespace troupe::actors
