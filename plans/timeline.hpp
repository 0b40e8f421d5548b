// A simulated step to look at: text for a terminal, SVG for a page, Chrome
// trace JSON for ui.perfetto.dev.
#pragma once

#include "plans/simulator.hpp"

#include <cstdint>
#include <string>

namespace troupe::plans {

/// A group of devices that do the same has a line of tasks, a letter each, and
/// one of its memory; then a legend.
std::string ascii_timeline(const Simulation& run, std::uint32_t columns = 72);
/// The last simulated step and what overlaps it, with the memory of each group.
std::string svg_timeline(const Simulation& run);
/// All simulated steps, a row a device (a group of devices that do the same).
std::string chrome_timeline(const Simulation& run);

} // namespace troupe::plans
