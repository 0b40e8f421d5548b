// Explains unknown keys: names our equivalent if another system has the key,
// else the nearest setting that the workflow reads.
#pragma once

#include "config/settings/mistakes.hpp"
#include "config/yaml/yaml_tree.hpp"

#include <string>

namespace troupe {

/// Adds the mistakes in `node` at dotted `path`, written as `key`: one line per
/// key below it that another system knows, one line for all others. `workflow`
/// is empty if not known yet.
void add_unknown_key(Mistakes& mistakes, const YamlNode& node,
                     const std::string& path, const std::string& key,
                     const std::string& workflow);

} // namespace troupe
