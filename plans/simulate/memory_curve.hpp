// Memory of each device over simulated time: the memory model's tasks at the
// times of the simulator. Between two tasks a device holds what is resident and
// the planes that both tasks have there.
#pragma once

#include "plans/simulate/simulator.hpp"

#include <vector>

namespace troupe::plans {

/// Fills in `memory` of the run's devices, over all simulated steps. `devices`
/// are those of the check of the run's plan, in the same order.
void add_memory_curves(Simulation& run, const std::vector<DevicePeak>& devices);

/// Returns the maximum of a curve between two times.
std::uint64_t most_bytes(const std::vector<MemoryPoint>& curve, double begin_s,
                         double end_s);

} // namespace troupe::plans
