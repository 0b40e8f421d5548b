#include "runtime/base/master_bind.hpp"

#include "config/base/own_address.hpp"

namespace troupe::runtime {

std::string master_bind(const ClusterSettings& cluster, std::uint32_t nodes) {
  if (cluster.bind != "auto" || (nodes == 1 && cluster.hosts.empty()))
    return cluster.bind;
  std::string own;
  for (const auto& host : cluster.hosts)
    if (own = address_towards(host); !is_loopback(own))
      return own;
  return own.empty() ? address_of_this_host() : own;
}

} // namespace troupe::runtime
