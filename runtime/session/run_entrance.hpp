// The entrance of workers into a run: the port where they join, the join actor
// that listens there, the heartbeat that tracks whether they are alive, and the
// files for those that do not share them.
#pragma once

#include "actors/membership/endpoint.hpp"
#include "actors/membership/heartbeat_actor.hpp"
#include "actors/membership/join_actor.hpp"
#include "config/base/error.hpp"
#include "config/base/listen_ports.hpp"
#include "runtime/run_folder/run_secret.hpp"
#include "runtime/session/run_basis.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace troupe::runtime {

/// Callbacks of the entrance, from threads of its own. What is not set is
/// ignored.
struct EntranceListeners {
  std::function<void(WorkerId)> on_joined = [](WorkerId) {};
  std::function<void(std::vector<actors::Joined>)> on_full
    = [](const std::vector<actors::Joined>&) {};
  std::function<void(WorkerId, bool is_suspect)> on_suspect
    = [](WorkerId, bool) {};
  std::function<void(WorkerId, Failure)> on_lost
    = [](WorkerId, const Failure&) {};
};

class RunEntrance {
public:
  /// The system must outlive this object.
  explicit RunEntrance(caf::actor_system& system) : system_(system) {}

  /// Listens; returns the address at which workers join. Throws FailureError
  /// (io): no port is free.
  std::string open(const RunBasis& basis, const EntranceListeners& listeners);
  /// Stops admitting workers.
  void close();
  /// Sends an exit message to the actors.
  void end();

  /// Returns the credentials of workers, once it is open.
  const RunSecret& secret() const {
    return secret_;
  }
  const actors::HeartbeatActor& heartbeat() const {
    return heartbeat_;
  }

private:
  actors::FileShare share_files(const RunBasis& basis,
                                const ListenPorts& where);

  caf::actor_system& system_;
  RunSecret secret_;
  std::optional<actors::Endpoint> endpoint_;
  std::uint16_t port_ = 0;
  actors::HeartbeatActor heartbeat_;
  actors::JoinActor join_actor_;
  actors::FilesActor files_actor_;
  std::filesystem::path probe_; ///< by which workers see the run folder
};

} // namespace troupe::runtime
