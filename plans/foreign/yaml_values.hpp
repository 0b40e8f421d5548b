// A YAML file of another system as a list of dotted keys, with the references
// of OmegaConf resolved: `${actor.path}`, `${oc.env:NAME,default}`,
// `${mul:a,b}`.
#pragma once

#include "config/yaml/yaml_tree.hpp"
#include "plans/foreign/foreign_config.hpp"

#include <string>

namespace troupe::plans {

/// Returns every scalar and list of the tree; a list of scalars is one value,
/// "[a, b]", of any other list each element has its number in the key.
ForeignConfig yaml_values(const YamlNode& root);

/// Replaces references by what they refer to, in all values at once: overrides
/// count. One that leads nowhere stays, with a note.
void resolve_references(ForeignConfig& config);

} // namespace troupe::plans
