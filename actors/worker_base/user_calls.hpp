// The functions and actors of a user-defined program, by the `fn` of their
// calls. Filled once, before a run; read by the function actors of workers.
#pragma once

#include "troupe/app.hpp"

#include <any>

namespace troupe::actors {

struct UserEntry {
  detail::UserCall call;
  detail::UserActor actor = {}; ///< for a call with a user-defined actor
  std::vector<detail::UserMetric> metrics = {}; ///< for a metrics call
};

/// Throws InvariantError if the name exists.
void add_user_entry(const std::string& fn, UserEntry entry);
/// Returns the entry of `fn`; nullptr: not of a user-defined program.
const UserEntry* find_user_entry(const std::string& fn);
/// Returns "actor checker", "function w.pick", ...: part of the identity of a
/// binary.
std::vector<std::string> user_names();

} // namespace troupe::actors
