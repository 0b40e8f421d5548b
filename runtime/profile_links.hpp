// Measures what lies between the devices of a crew: messages, sums and gathers
// of a small and a large size, by all pairs at once, and copies of host memory.
#pragma once

#include "plans/hardware.hpp"
#include "runtime/profile_crew.hpp"

namespace troupe::runtime {

/// Fills the links of `hardware`, and its memory, with sources. Large is as
/// large as `model_bytes`, the largest model's weights, within limits.
void measure_links(ProfileCrew& crew, double model_bytes,
                   plans::Hardware& hardware);

} // namespace troupe::runtime
