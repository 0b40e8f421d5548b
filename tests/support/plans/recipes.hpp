// Configurations of other systems in tests: texts with the sizes and flags of
// published recipes, read as `plan import` reads files.
#pragma once

#include "plans/foreign/command_flags.hpp"
#include "plans/foreign/imported.hpp"
#include "plans/foreign/yaml_values.hpp"

#include <string>

namespace troupe::support {

inline plans::Recipe recipe_of(plans::ForeignConfig config) {
  plans::resolve_references(config);
  return plans::read_recipe(plans::detect_system(config), config);
}

inline plans::Recipe recipe_of_script(const std::string& script) {
  return recipe_of(plans::flags_of(plans::read_shell(script, "run.sh")));
}

inline plans::Recipe recipe_of_yaml(const std::string& yaml,
                                    const std::string& overrides = "") {
  auto config = plans::yaml_values(
    parse_yaml(yaml, "config.yaml", RepeatedKeys::last_one_counts));
  if (!overrides.empty())
    config.append(
      plans::flags_of(plans::read_shell("python3 " + overrides, "run.sh")));
  return recipe_of(std::move(config));
}

/// Returns the settings and the plan of a recipe on devices of 80 GB, as a user
/// would load them.
Settings settings_of(const plans::Recipe& recipe);

} // namespace troupe::support
