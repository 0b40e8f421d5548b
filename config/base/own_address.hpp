// Addresses of this host: the one by which another host reaches it, and those
// that no other host can reach.
#pragma once

#include <string>

namespace troupe {

/// Returns whether packets to this numeric address never leave the host.
bool is_loopback(const std::string& address);

/// Returns the address from which this host's packets to `host` leave, without
/// sending any; an address of this host is its own. Throws FailureError (io) if
/// `host` has no address or there is no route to it.
std::string address_towards(const std::string& host);

/// Returns the address of this host's name. Throws FailureError (io) if that is
/// a loopback address only.
std::string address_of_this_host();

/// Returns whether `host`, a name or an address, is known to be another host:
/// false if nothing is known of it.
bool is_other_host(const std::string& host);

} // namespace troupe
