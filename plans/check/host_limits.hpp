// The limits of hosts' memory, which offloaded planes and servers of another
// program share: what a plan takes of it against what a host has.
#pragma once

#include "plans/check/plan_check.hpp"

#include <cstdint>
#include <vector>

namespace troupe::plans::internal {

/// Bytes of offloaded planes, and a mistake for each host that has too little.
struct HostNeeds {
  std::uint64_t offloaded_bytes = 0; ///< of the host with most
  std::vector<PlanMistake> mistakes = {};
};
HostNeeds host_needs(const CheckContext& context, const Replicas& replicas);

} // namespace troupe::plans::internal
