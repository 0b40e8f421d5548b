// Settings from the command line: "a.b=c" as a small YAML tree.
#pragma once

#include "config/yaml_tree.hpp"

#include <string>
#include <vector>

namespace troupe {

/// One nested tree for all of `overrides`, later ones first in force, placed at
/// "command line". A value that starts with [ { " or ' is YAML, any other is
/// the text itself; "null" and "~" are nulls, which remove on merging, and a
/// mapping replaces what is there. Throws ConfigError if there is no key or no
/// '='.
YamlNode parse_overrides(const std::vector<std::string>& overrides);

} // namespace troupe
