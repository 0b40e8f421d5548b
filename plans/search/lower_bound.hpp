// A lower bound on the step time of all plans of a space, whatever overlaps:
// with lag and chunks too.
#pragma once

#include "plans/search/search_space.hpp"

#include <cstdint>

namespace troupe::plans {

/// Returns the larger of two bounds. First, the critical path with every call
/// at its fastest: a call with chunks waits for the last chunk that it reads,
/// so an inference adds one chunk, generation and training add all. With lag k,
/// k + 1 steps may be under way. Second, the least device-seconds of all calls,
/// divided evenly; where nodes differ, those of each kind with weights.
double least_step_s(const SearchSpace& space, std::uint32_t max_lag);

} // namespace troupe::plans
