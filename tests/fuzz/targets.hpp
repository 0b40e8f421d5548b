// Targets of fuzzing: everything that reads what a user, a file or a peer
// wrote.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace troupe::fuzz {

struct Target {
  std::string name;
  std::vector<std::string> corpus; ///< valid inputs to damage
  /// Reads one input. Allowed to throw: ConfigError, PlanError, FailureError,
  /// net::WireError, std::invalid_argument. Anything else is a finding.
  std::function<void(const std::string&)> read;
};

/// Returns all targets; `folder` is for those that read files, `examples` holds
/// the settings and plans of the demo.
std::vector<Target> all_targets(const std::string& folder,
                                const std::string& examples);
/// Reads an input and catches what targets may throw.
void try_input(const Target& target, const std::string& input);
/// Returns the targets of data and model folders, in reader_targets.cpp.
void add_reader_targets(std::vector<Target>& targets,
                        const std::string& folder);

} // namespace troupe::fuzz
