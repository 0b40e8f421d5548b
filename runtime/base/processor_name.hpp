// The processor of this machine by name, which profiles of it carry.
#pragma once

#include <string>

namespace troupe::runtime {

/// Returns "profiled on PROCESSOR": the name of files that were measured here.
std::string profiled_name();

} // namespace troupe::runtime
