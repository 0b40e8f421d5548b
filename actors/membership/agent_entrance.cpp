#include "actors/membership/agent_entrance.hpp"

#include "actors/membership/sessions_actor.hpp"

#include <fmt/format.h>

namespace troupe::actors {

namespace {

/// A request of a session ends with it; this is for the way there and back.
constexpr std::chrono::seconds after_session{10};

} // namespace

AgentEntrance::AgentEntrance(caf::actor_system& system,
                             const AgentEntranceSetup& setup)
  : endpoint_{.sessions = {},
              .base_url
              = fmt::format("http://{}:{}/v1", setup.address, setup.port)} {
  const auto share = std::make_shared<EndpointShare>(setup.token);
  endpoint_.sessions = system.spawn(
    sessions_actor,
    SessionsSetup{.share = share,
                  .base_url = endpoint_.base_url,
                  .within
                  = std::chrono::ceil<std::chrono::milliseconds>(setup.timeout)
                    + after_session,
                  .incarnation = setup.incarnation,
                  .asks = setup.asks});
  try {
    server_ = std::make_unique<net::ApiServer>(
      "master, agents.port", setup.port,
      [share, actor = endpoint_.sessions](
        net::ApiCall call, const net::ApiServer::Answer& answer) {
        share->put({std::move(call), answer});
        caf::anon_send(actor, take_atom::value);
      },
      net::ApiAccess{.address = setup.address,
                     .knows = [share](const std::string& key) {
                       return share->knows(key);
                     }});
  } catch (...) { // or the actor system would wait for it for ever
    caf::anon_send_exit(endpoint_.sessions, caf::exit_reason::user_shutdown);
    throw;
  }
}

AgentEntrance::~AgentEntrance() {
  server_.reset();
  caf::anon_send_exit(endpoint_.sessions, caf::exit_reason::user_shutdown);
}

} // namespace troupe::actors
