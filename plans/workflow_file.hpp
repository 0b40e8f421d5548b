// A workflow out of a YAML file (config/workflow_file.hpp has its form).
#pragma once

#include "plans/workflow.hpp"

namespace troupe::plans {

/// Throws ConfigError at the file's line.
Workflow file_workflow(const std::string& file);

} // namespace troupe::plans
