// Seconds below which no plan of a space can be, whatever overlaps: with lag
// and chunks too.
#pragma once

#include "plans/search_space.hpp"

#include <cstdint>

namespace troupe::plans {

/// The larger of two. The critical path, every call at its fastest: a call of
/// chunks waits for the last chunk it reads, so an inference adds one chunk,
/// generation and training all. With lag k, k + 1 steps may be under way. And
/// the least device-seconds of all calls, shared out evenly.
double least_step_s(const SearchSpace& space, std::uint32_t max_lag);

} // namespace troupe::plans
