// The endpoint of a run: where the master's join actor listens and workers find
// it, over mutual TLS on every address. CAF itself has no passwords: any peer
// that connects may send any message to any actor, so loopback, which all users
// of a host share, is no protection.
#pragma once

#include "actors/protocol/messages.hpp"
#include "config/base/defaults.hpp"
#include "net/transport/tls.hpp"

#include <caf/io/middleman_actor.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>

namespace troupe::actors {

class Endpoint {
public:
  /// `tls`: nullptr for plain text, to compare. The system must outlive the
  /// endpoint.
  Endpoint(caf::actor_system& system,
           std::shared_ptr<const net::TlsContext> tls);
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  /// Listens on an address of this host; returns the port (0: any free one).
  /// Throws FailureError (io).
  std::uint16_t open(const JoinActor& join_actor, const std::string& address,
                     std::uint16_t port);
  /// Stops accepting connections.
  void close(const JoinActor& join_actor, std::uint16_t port);
  /// Returns the join actor that listens there, or why none was found `within`
  /// this time.
  std::variant<JoinActor, std::string>
  find(const std::string& host, std::uint16_t port,
       std::chrono::milliseconds within = defaults::connect_within);

private:
  caf::actor_system& system_;
  bool secure_;
  caf::io::middleman_actor middleman_;
};

} // namespace troupe::actors
