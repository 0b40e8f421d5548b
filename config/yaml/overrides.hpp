// Settings from the command line: "a.b=c" as a small YAML tree.
#pragma once

#include "config/yaml/yaml_tree.hpp"

#include <string>
#include <vector>

namespace troupe {

/// Returns one nested tree of all `overrides`, where later ones win, placed at
/// "command line". A value that starts with [ { " or ' is YAML, any other is
/// literal text; "null" and "~" are nulls, which remove on merging, and a
/// mapping replaces the previous value. Throws ConfigError if there is no key
/// or no '='.
YamlNode parse_overrides(const std::vector<std::string>& overrides);

} // namespace troupe
