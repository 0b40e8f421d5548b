// Agrees on NCCL in a group of hosts: its members can join over it if all of
// them have it, and each has a GPU that no other member has.
#pragma once

#include "net/collectives/collectives.hpp"

#include <array>
#include <cstdint>
#include <string_view>

namespace troupe::net {

/// A member's part of the agreement.
struct NcclOffer {
  std::array<std::int32_t, 4> gpu{}; ///< identity of its device
  std::int32_t has_nccl = 0;
};

/// Returns why the group cannot use NCCL, after all members have called it
/// through their host group; empty: it can. Throws FailureError.
std::string_view why_no_nccl(Collectives& host, const NcclOffer& mine);

} // namespace troupe::net
