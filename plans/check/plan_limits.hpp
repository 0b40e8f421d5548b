// Rules of the plan checker for batching and offload, separate from its walk
// over the plan.
#pragma once

#include "plans/check/plan_check.hpp"

#include <string>

namespace troupe::plans::internal {

/// Returns "expected ...", or an empty string if the call may be cut like this.
std::string why_no_chunks(const CheckContext& context, const Call& call,
                          const Placement& placement);
/// Returns "expected ...", or an empty string if the call may be in slices.
std::string why_no_slices(const CheckContext& context, const Call& call,
                          const Placement& placement);
/// Returns "expected ...", or an empty string if servers of another program
/// may generate the call like this (`rollout.engine`).
std::string why_no_servers(const CheckContext& context, const Call& call,
                           const Placement& placement);
/// Returns "expected ...", or an empty string if the tokens of the call's
/// samples may be cut like this, by a strategy that is legal otherwise.
std::string why_no_context(const CheckContext& context, const Call& call,
                           const Placement& placement);
/// Returns "expected ...", or an empty string if the second roles of the call's
/// conversations may be placed like this.
std::string why_no_second(const CheckContext& context, const Call& call,
                          const Placement& placement);
/// Returns "expected ...", or an empty string if the role may leave the device
/// like this.
std::string why_no_offload(const CheckContext& context, const std::string& role,
                           const RoleMemory& memory);

/// Returns "d8z3 for actor_train, " if a training on the device could be
/// sharded; else an empty string.
std::string sharding_hint(const CheckContext& context, Rank device);

} // namespace troupe::plans::internal
