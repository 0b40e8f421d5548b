// Devices in the names of requests: those of a worker are asked as one.
#pragma once

#include "config/base/ids.hpp"

#include <string>
#include <vector>

namespace troupe::actors {

/// Returns "device 3", "devices 0-7".
std::string device_names(const std::vector<Rank>& devices);

} // namespace troupe::actors
