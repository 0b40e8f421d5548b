// The master's endpoint for agents (agents.port): a server for programs that
// run elsewhere, in front of the actor that knows who has their sessions.
// Parent: the attempt at the run, whose end closes it.
#pragma once

#include "actors/protocol/ask.hpp"
#include "net/http_server/api_server.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

namespace troupe::actors {

struct AgentEntranceSetup {
  std::string address;
  std::uint16_t port = 0;
  std::string token;                        ///< by which programs take sessions
  std::chrono::duration<double> timeout{0}; ///< agents.timeout_s
  Incarnation incarnation;
  std::shared_ptr<AskTable> asks;
};

class AgentEntrance {
public:
  /// Listens. Throws FailureError (io): port in use, address not local. The
  /// system must outlive it.
  AgentEntrance(caf::actor_system& system, const AgentEntranceSetup& setup);
  /// Drops open connections.
  ~AgentEntrance();
  AgentEntrance(const AgentEntrance&) = delete;
  AgentEntrance& operator=(const AgentEntrance&) = delete;

  const AgentEndpoint& endpoint() const {
    return endpoint_;
  }

private:
  AgentEndpoint endpoint_;
  std::unique_ptr<net::ApiServer> server_;
};

} // namespace troupe::actors
