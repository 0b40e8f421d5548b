// Settings that a choice brings along: the numbers of the paper with
// `algorithm.loss` and `algorithm.correction.kind`, the conventions of another
// program with `algorithm.like`. They replace defaults, never what a user
// wrote. One table, because otherwise each would be an `if` of its own.
#pragma once

#include "config/settings/settings.hpp"

#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// A default that the choice `by` ("algorithm.like: verl") sets.
struct Convention {
  std::string path;
  std::string value; ///< as YAML
  std::string by;
};

/// Returns what the choices of these settings make of `path`; nothing if they
/// leave it alone.
std::optional<Convention> convention_for(const Settings& settings,
                                         const std::string& path);
/// Returns the settings that choices may set, those first on which others
/// depend.
const std::vector<std::string>& convention_paths();
/// Returns every default of resolved settings that a choice has set, for the
/// table at the start of a run.
std::vector<Convention> conventions_in(const Settings& settings);

} // namespace troupe
