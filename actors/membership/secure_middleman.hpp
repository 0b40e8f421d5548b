// CAF's connections over mutual TLS: what CAF's own middleman actor does in
// plain text, on sessions of net. CAF has an OpenSSL module; this one also
// handles unknown peers well: an unfinished handshake costs no processor time,
// an error of one connection ends no other, and secrets need not be in a file.
#pragma once

#include "net/transport/tls.hpp"

#include <caf/io/middleman_actor.hpp>

#include <memory>

namespace caf {
class actor_system;
} // namespace caf

namespace troupe::actors {

/// Serves `publish`, `connect` and `unpublish` of the system's middleman; its
/// owner ends it by an exit message.
caf::io::middleman_actor
spawn_secure_middleman(caf::actor_system& system,
                       std::shared_ptr<const net::TlsContext> tls);

} // namespace troupe::actors
