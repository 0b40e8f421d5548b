// The functions and actors of a user-defined program, and the Python functions
// of a workflow file, by the `fn` of their calls. Filled before a run; read by
// the function actors of workers.
#pragma once

#include "config/settings/python_functions.hpp"

#include "troupe/app.hpp"

#include <any>
#include <optional>

namespace troupe::actors {

/// A function that child processes run, or with which they lead conversations.
struct PythonEntry {
  PythonFunction function;
  std::uint32_t processes = 1;
};

struct UserEntry {
  detail::UserCall call;
  detail::UserActor actor = {}; ///< for a call with a user-defined actor
  std::vector<detail::UserMetric> metrics = {}; ///< for a metrics call
  /// In place of call.function, or of the actor's spawner.
  std::optional<PythonEntry> python = {};
  bool is_of_file = false; ///< a workflow file's, not the program's
};

/// Throws InvariantError if the name exists.
void add_user_entry(const std::string& fn, UserEntry entry);
/// Adds or replaces an entry of a workflow file. An equal one stays where it
/// is: others may hold it.
void set_file_entry(const std::string& fn, UserEntry entry);
/// Returns the entry of `fn`; nullptr: not of a user-defined program.
const UserEntry* find_user_entry(const std::string& fn);
/// Returns "actor checker", "function w.pick", ...: part of the identity of a
/// binary. What a workflow file has is part of the settings.
std::vector<std::string> user_names();

} // namespace troupe::actors
