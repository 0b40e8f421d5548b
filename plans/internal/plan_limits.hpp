// What the plan checker says of batching and offload, apart from the checker's
// walk over the plan.
#pragma once

#include "plans/plan_check.hpp"

#include <string>

namespace troupe::plans::internal {

/// "expected ..", empty if the call may be cut like this.
std::string why_no_chunks(const CheckContext& context, const Call& call,
                          const Placement& placement);
/// "expected ..", empty if the role may leave the device like this.
std::string why_no_offload(const CheckContext& context, const std::string& role,
                           const RoleMemory& memory);

/// "d8z3 for actor_train, " if a training on the device could be sharded; else
/// nothing.
std::string sharding_hint(const CheckContext& context, Rank device);

} // namespace troupe::plans::internal
