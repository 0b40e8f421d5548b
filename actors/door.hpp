// The way into a run: where the master's lobby listens and workers find it,
// over mutual TLS on every address. CAF itself knows no passwords: whoever
// connects may send any message to any actor, so loopback, which all users of a
// host share, is no protection.
#pragma once

#include "actors/messages.hpp"
#include "config/defaults.hpp"
#include "net/tls.hpp"

#include <caf/io/middleman_actor.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>

namespace troupe::actors {

class Door {
public:
  /// `tls`: nullptr for in clear, to compare. The system must outlive the door.
  Door(caf::actor_system& system, std::shared_ptr<const net::TlsContext> tls);
  ~Door();
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;

  /// Listens on an address of this host; returns the port (0: any free one).
  /// Throws FailureError (io).
  std::uint16_t open(const LobbyActor& lobby, const std::string& address,
                     std::uint16_t port);
  /// Nobody else may come: accepts no further connection.
  void close(const LobbyActor& lobby, std::uint16_t port);
  /// The lobby that listens there, or why none was found `within` this time.
  std::variant<LobbyActor, std::string>
  find(const std::string& host, std::uint16_t port,
       std::chrono::milliseconds within = defaults::connect_within);

private:
  caf::actor_system& system_;
  bool secure_;
  caf::io::middleman_actor middleman_;
};

} // namespace troupe::actors
