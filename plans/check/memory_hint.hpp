// Hints for a plan that overfills a device: the smallest change first. A
// setting is named only if the memory of the plan with it was computed and
// fits, so that nobody tries it in vain.
#pragma once

#include "plans/check/plan_check.hpp"

#include <string>

namespace troupe::plans::internal {

/// Returns what to try for a device whose `peak` is too high: a smaller cache,
/// recomputation, sharding, fewer calls.
std::string memory_hint(const CheckContext& context, const Replicas& replicas,
                        const DeviceMemory& memory, const DevicePeak& peak);

} // namespace troupe::plans::internal
