#include "actors/membership/endpoint.hpp"

#include "actors/membership/secure_middleman.hpp"
#include "config/base/error.hpp"

#include <caf/all.hpp>
#include <caf/io/all.hpp>

#include <optional>
#include <set>

namespace troupe::actors {

Endpoint::Endpoint(caf::actor_system& system,
                   std::shared_ptr<const net::TlsContext> tls)
  : system_(system),
    secure_(tls != nullptr),
    middleman_(secure_ ? spawn_secure_middleman(system, std::move(tls))
                       : system.middleman().actor_handle()) {}

Endpoint::~Endpoint() {
  if (!secure_)
    return; // owned by the system
  caf::scoped_actor self{system_, true};
  self->send_exit(middleman_, caf::exit_reason::kill);
  self->wait_for(middleman_);
}

std::uint16_t Endpoint::open(const JoinActor& join_actor,
                             const std::string& address, std::uint16_t port) {
  caf::scoped_actor self{system_, true};
  std::uint16_t bound = 0;
  std::optional<std::string> problem;
  self
    ->request(middleman_, caf::infinite, caf::publish_atom::value, port,
              caf::actor_cast<caf::strong_actor_ptr>(join_actor),
              system_.message_types<JoinActor>(), address, /*reuse=*/true)
    .receive([&](std::uint16_t found) { bound = found; },
             [&](const caf::error& error) { problem = system_.render(error); });
  if (problem)
    throw FailureError{
      {.code = Errc::io, .who = "master", .what = *problem, .cause = ""}};
  return bound;
}

void Endpoint::close(const JoinActor& join_actor, std::uint16_t port) {
  caf::anon_send(middleman_, caf::unpublish_atom::value, join_actor.address(),
                 port);
}

std::variant<JoinActor, std::string>
Endpoint::find(const std::string& host, std::uint16_t port,
               std::chrono::milliseconds within) {
  caf::scoped_actor self{system_, true};
  caf::strong_actor_ptr found;
  std::string problem = "nothing is published there";
  self->request(middleman_, within, caf::connect_atom::value, host, port)
    .receive(
      [&](const caf::node_id&, caf::strong_actor_ptr& actor,
          const std::set<std::string>& interface) {
        if (system_.assignable<JoinActor>(interface))
          found = std::move(actor);
      },
      [&](const caf::error& error) { problem = system_.render(error); });
  if (found)
    return caf::actor_cast<JoinActor>(std::move(found));
  return problem;
}

} // namespace troupe::actors
