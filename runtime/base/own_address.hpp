// Addresses of this host: the one by which other hosts of a run reach it (what
// `bind: auto` means if there is more than one), and those that no other host
// can reach.
#pragma once

#include "config/settings/settings_types.hpp"

#include <cstdint>
#include <string>

namespace troupe::runtime {

/// Returns whether packets to this numeric address never leave the host.
bool is_loopback(const std::string& address);

/// Returns the address from which this host's packets to `host` leave, without
/// sending any; an address of this host is its own. Throws FailureError (io) if
/// `host` has no address or there is no route to it.
std::string address_towards(const std::string& host);

/// Returns `cluster.bind` of the master: `auto` is kept on one node, else it is
/// the address that the hosts reach.
std::string master_bind(const ClusterSettings& cluster, std::uint32_t nodes);

} // namespace troupe::runtime
