// Explains keys that are no settings: gives their name here if another system
// has them, else the nearest setting that the workflow reads.
#pragma once

#include "config/mistakes.hpp"
#include "config/yaml_tree.hpp"

#include <string>

namespace troupe {

/// Adds what is wrong with `node` at dotted `path`, written as `key`: a line
/// for each key below it that another system knows, one line for all others. An
/// empty workflow is not known yet.
void add_unknown_key(Mistakes& mistakes, const YamlNode& node,
                     const std::string& path, const std::string& key,
                     const std::string& workflow);

} // namespace troupe
