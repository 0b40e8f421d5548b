// Makes a workflow from a YAML file (config/settings/workflow_file.hpp defines
// the format).
#pragma once

#include "config/settings/workflow_file.hpp"
#include "plans/workflow/workflow.hpp"

#include <functional>
#include <optional>
#include <string>

namespace troupe::plans {

/// Returns the program's workflow of this name, if it has one.
using FindWorkflow
  = std::function<std::optional<Workflow>(const std::string& name)>;

/// Makes the workflow of a file. A fn "w.check" is that of call check of the
/// program's workflow w; what the file omits of such a call is taken from
/// there. Throws ConfigError at the file's line.
Workflow file_workflow(const WorkflowFile& file, const Settings& settings,
                       const FindWorkflow& find_user);

} // namespace troupe::plans
