// A recipe as files of ours: settings with the plan that its system would run,
// and the account of what was read. What a share of a device's memory means in
// bytes depends on the devices and on the models' sizes.
#pragma once

#include "config/model/model_shape.hpp"
#include "config/settings/settings.hpp"
#include "plans/foreign/recipe.hpp"

#include <cstdint>
#include <map>
#include <string>

namespace troupe::plans {

/// Facts that a recipe does not have.
struct ImportFacts {
  double device_bytes = 0; ///< of the devices that it is planned for
  /// By name, as in the recipe; absent: unknown to us.
  std::map<std::string, ModelShape> shapes = {};
  /// Folders of models with a config.json, by name; absent: the name stands.
  std::map<std::string, std::string> folders = {};
};

/// Returns the bytes that the engine leaves for its cache on a device: its
/// share of the memory less its weights; 0: not limited by a share.
double cache_bytes(const Recipe& recipe, const ImportFacts& facts);

/// Returns the settings as YAML, with the plan of the recipe's layout in it.
/// Throws ConfigError for settings that ours do not allow.
std::string print_imported(const Recipe& recipe, const ImportFacts& facts);

/// Returns the account, a line per value: where, what, what it became. With
/// `all`, also what changes neither times nor memory.
std::string print_account(const Recipe& recipe, bool all);

} // namespace troupe::plans
