// The actors that a session spawns once its workers have joined: the one that
// makes them load, then a master with those that work for it, or the doctor's
// check of moves. Each gets an exit message at the end, or the actor system
// would wait for it for ever.
#pragma once

#include "actors/membership/agent_entrance.hpp"
#include "actors/membership/join_actor.hpp"
#include "runtime/session/master_actors.hpp"
#include "runtime/session/move_actors.hpp"
#include "runtime/session/run_basis.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace troupe::runtime {

/// Callbacks of the loading, from handlers of its own.
struct LoadListeners {
  std::function<void(std::vector<actors::SetupDone>)> on_ready;
  std::function<void(Failure)> on_failure;
};

class RunActors {
public:
  /// Both must outlive this object.
  RunActors(caf::actor_system& system, const RunBasis& basis)
    : system_(system),
      basis_(basis) {}

  /// Opens the master's endpoint for agents, before the workers load; its
  /// address follows that of the page. Returns where programs find it. Throws
  /// FailureError (io): port in use.
  std::string open_to_agents(const std::string& token);
  /// Makes the workers, by number, load what they need.
  void load(const std::vector<actors::Joined>& workers,
            const LoadListeners& listeners);
  /// Spawns a master, which waits for `start`.
  void spawn_master(const std::vector<actors::SetupDone>& ready,
                    MasterEvents events);
  /// Spawns the check of moves and starts it.
  void begin_move_check(const std::vector<actors::SetupDone>& ready,
                        std::function<void(const actors::RunEnd&)> on_end);
  /// Sends an exit message to all of them.
  void end();

  bool have_workers() const {
    return !nodes_.empty();
  }
  /// Returns the master; null before it is spawned.
  const actors::MasterActor& master() const {
    return master_;
  }

private:
  caf::actor_system& system_;
  const RunBasis& basis_;
  actors::SetupActor setup_;
  actors::MasterActor master_;
  actors::MoveCheckActor move_check_;
  std::vector<actors::NodeActor> nodes_;
  std::vector<caf::actor_addr> all_;
  std::unique_ptr<actors::AgentEntrance> agents_; ///< null: none
};

} // namespace troupe::runtime
