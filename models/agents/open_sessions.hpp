// The sessions of a whole run, as the master's endpoint knows them: which
// worker has the session of a key, and which sessions wait for a program, in
// the order in which they came.
#pragma once

#include "config/base/ids.hpp"

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <string>

namespace troupe::models {

class OpenSessions {
public:
  /// Adds a session; `waits` is whether a program is to take it.
  void open(const std::string& key, WorkerId worker, bool waits);
  /// Removes a session, if it is there.
  void close(const std::string& key);
  /// Returns the worker that has the session of a key; nothing: there is none.
  std::optional<WorkerId> worker_of(const std::string& key) const;
  /// Takes the session that has waited longest; nothing: none waits.
  std::optional<std::string> take();
  std::size_t size() const {
    return workers_.size();
  }

private:
  std::map<std::string, WorkerId> workers_; ///< by key
  std::deque<std::string> waiting_;         ///< keys of those to be taken
};

} // namespace troupe::models
