// Events with a past time, for what is known only after it happened. They must
// be within the slice that is open on the track, or viewers lose the arrow.
#pragma once

#include "config/trace/trace.hpp"

namespace troupe::trace {

/// Returns nanoseconds of the trace's clock.
std::int64_t now_ns() noexcept;
void send_at(std::int64_t time_ns, Track track, Name name, std::uint64_t flow,
             std::uint32_t step, std::uint64_t bytes) noexcept;

} // namespace troupe::trace
