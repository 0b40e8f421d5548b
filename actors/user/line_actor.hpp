// An actor with a thread of its own for each child process that answers lines,
// for the pools of user-defined actors and for leaders of conversations in
// Python.
#pragma once

#include "net/child_programs/line_programs.hpp"

#include "troupe/process_pool.hpp"

#include <atomic>
#include <memory>

namespace troupe::detail {

/// Spawns one process that answers each line before it gets the next; it ends
/// with an exit message. `stop` ends an answer that is awaited; null: none.
LineActor spawn_line_actor(caf::actor_system& system,
                           net::LineProgramOptions options,
                           std::shared_ptr<const std::atomic<bool>> stop);

} // namespace troupe::detail
