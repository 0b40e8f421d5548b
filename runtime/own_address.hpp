// Addresses of this host: which one other hosts of a run reach (what `bind:
// auto` means where there is more than one), and which nobody else does.
#pragma once

#include "config/settings_types.hpp"

#include <cstdint>
#include <string>

namespace troupe::runtime {

/// Whether packets to this numeric address never leave the host.
bool is_loopback(const std::string& address);

/// The address from which this host's packets to `host` leave; nothing is sent.
/// "127.0.0.1" for this host itself. Throws FailureError (io) where `host` has
/// no address or there is no way to it.
std::string address_towards(const std::string& host);

/// `cluster.bind` of the master: `auto` stays so on one node, else it is the
/// address that the hosts reach.
std::string master_bind(const ClusterSettings& cluster, std::uint32_t nodes);

} // namespace troupe::runtime
