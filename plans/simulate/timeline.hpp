// Renders a simulated step: text for a terminal, SVG for a page, Chrome trace
// JSON for ui.perfetto.dev.
#pragma once

#include "plans/simulate/simulator.hpp"

#include <cstdint>
#include <string>

namespace troupe::plans {

/// Draws one line of tasks per group of devices that do the same, one letter
/// per task, and one line of its memory; then a legend.
std::string ascii_timeline(const Simulation& run, std::uint32_t columns = 72);
/// Draws the last simulated step and what overlaps it, with the memory of each
/// group.
std::string svg_timeline(const Simulation& run);
/// Writes all simulated steps, one row per device (a group of devices that do
/// the same).
std::string chrome_timeline(const Simulation& run);

} // namespace troupe::plans
