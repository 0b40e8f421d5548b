// Resident memory of this process: workers report it in their heartbeats, the
// master in its trace.
#pragma once

#include <cstdint>

namespace troupe::actors {

std::uint64_t resident_bytes();

} // namespace troupe::actors
