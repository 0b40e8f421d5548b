// The address that the master listens on: what `bind: auto` means if there are
// other hosts.
#pragma once

#include "config/settings/settings_types.hpp"

#include <cstdint>
#include <string>

namespace troupe::runtime {

/// Returns `cluster.bind` of the master: `auto` is kept on one node, else it is
/// the address that the hosts reach.
std::string master_bind(const ClusterSettings& cluster, std::uint32_t nodes);

} // namespace troupe::runtime
