// A workflow out of a YAML file (config/workflow_file.hpp has its form).
#pragma once

#include "config/workflow_file.hpp"
#include "plans/workflow.hpp"

#include <functional>
#include <optional>
#include <string>

namespace troupe::plans {

/// The program's workflow of this name, if it has one.
using FindWorkflow
  = std::function<std::optional<Workflow>(const std::string& name)>;

/// A fn "w.check" is that of call check of the program's workflow w; what the
/// file does not say of such a call is as it is there. Throws ConfigError at
/// the file's line.
Workflow file_workflow(const WorkflowFile& file, const Settings& settings,
                       const FindWorkflow& find_own);

} // namespace troupe::plans
