// What a plan takes of the memory of hosts, offloaded planes and servers of
// another program, against what a host has.
#pragma once

#include "plans/check/plan_check.hpp"

#include <cstdint>
#include <vector>

namespace troupe::plans::internal {

/// What offloaded planes take, and hosts that have too little memory.
struct HostNeeds {
  std::uint64_t offloaded_bytes = 0; ///< of the host with most
  std::vector<PlanMistake> mistakes = {};
};
HostNeeds host_needs(const CheckContext& context, const Replicas& replicas);

} // namespace troupe::plans::internal
