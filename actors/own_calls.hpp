// The functions and actors of an own program, by the `fn` of their calls.
// Filled once, before a run; read by the function actors of workers.
#pragma once

#include "troupe/app.hpp"

#include <any>

namespace troupe::actors {

struct OwnEntry {
  detail::OwnCall call;
  detail::OwnActor actor = {};                 ///< of a call with an own actor
  std::vector<detail::OwnMetric> metrics = {}; ///< of a metrics call
};

/// Throws InvariantError for a name that is there.
void add_own_entry(const std::string& fn, OwnEntry entry);
/// nullptr: not an own program's.
const OwnEntry* find_own_entry(const std::string& fn);
/// "actor checker", "function w.pick", ..: part of what tells binaries apart.
std::vector<std::string> own_names();

} // namespace troupe::actors
