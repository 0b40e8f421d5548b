// Limits of a search space, and counts of what was left out of it.
#pragma once

#include "plans/plan/execution_plan.hpp"

#include <cstdint>
#include <vector>

namespace troupe::plans {

/// Limits of the space.
struct SpaceLimits {
  bool chunks = false;
  /// Plans whose choices are also in the space: presets have their own splits,
  /// strategies and chunks.
  std::vector<ExecutionPlan> also = {};
};

struct SpaceCounts {
  std::uint64_t kept = 0;
  std::uint64_t illegal = 0;   ///< by heads, layers, samples
  std::uint64_t memory = 0;    ///< too large for a device on its own
  std::uint64_t dominated = 0; ///< another one is as good in everything
};

} // namespace troupe::plans
