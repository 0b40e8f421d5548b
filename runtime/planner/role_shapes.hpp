// The shapes of a workflow's models, from their config.json alone: runs check
// weights and tokenizers later (runtime/run_folder/session_inputs.hpp), plans
// need neither.
#pragma once

#include "config/model/model_shape.hpp"
#include "config/settings/settings.hpp"
#include "plans/workflow/workflow.hpp"

#include <filesystem>
#include <map>
#include <string>

namespace troupe::runtime {

using RoleShapes = std::map<std::string, ModelShape>;

/// Returns the setting that names a role's model: models.ROLE.path.
std::string model_path_key(const plans::Role& role);
/// Returns the folder, or name, of a role's model; empty if none is set.
std::filesystem::path model_folder(const Settings& settings,
                                   const plans::Role& role);

/// Reads each role's config.json, with the head that the workflow needs. Throws
/// ConfigError at the place of the setting for a folder that does not exist.
RoleShapes read_shapes(const Settings& settings,
                       const plans::Workflow& workflow);
/// Returns the same for plans alone: a path that is no folder may be the name
/// of a model whose shape we know (config/model/known_models.hpp).
RoleShapes planned_shapes(const Settings& settings,
                          const plans::Workflow& workflow);

} // namespace troupe::runtime
