// The shape of a role's model: what a config.json says, with what the workflow
// and the settings add.
#pragma once

#include "config/model/model_shape.hpp"
#include "config/settings/settings.hpp"
#include "plans/workflow/workflow.hpp"

namespace troupe::plans {

/// Returns the adapters that the settings give a role; an EMA has those of the
/// role that it follows.
LoraSettings lora_of(const Settings& settings, const Role& role);

/// Returns the shape with the role's head and adapters. Throws ConfigError at
/// models.ROLE.lora.targets for a matrix that cannot be adapted.
ModelShape role_shape(ModelShape read, const Role& role,
                      const Settings& settings);

} // namespace troupe::plans
