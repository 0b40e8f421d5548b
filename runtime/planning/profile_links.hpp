// Measures the links between the devices of a pool: messages, sums and gathers
// of a small and a large size, by all pairs at once, and copies of host memory.
#pragma once

#include "plans/cost/hardware.hpp"
#include "runtime/planning/profile_pool.hpp"

namespace troupe::runtime {

/// Sets the links of `hardware`, and its memory, with sources. Large is as
/// large as `model_bytes`, the largest model's weights, within limits.
void measure_links(ProfilePool& pool, double model_bytes,
                   plans::Hardware& hardware);

} // namespace troupe::runtime
