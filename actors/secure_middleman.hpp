// CAF's connections over mutual TLS: what CAF's own middleman actor does in
// clear, on sessions of net. CAF has an OpenSSL module; this one also answers
// strangers well: an unfinished handshake costs no processor time, an error of
// one connection ends no other, and secrets need not lie in a file.
#pragma once

#include "net/tls.hpp"

#include <caf/io/middleman_actor.hpp>

#include <memory>

namespace caf {
class actor_system;
} // namespace caf

namespace troupe::actors {

/// Serves `publish`, `connect` and `unpublish` of the system's middleman; whose
/// it is sends it an exit.
caf::io::middleman_actor
spawn_secure_middleman(caf::actor_system& system,
                       std::shared_ptr<const net::TlsContext> tls);

} // namespace troupe::actors
