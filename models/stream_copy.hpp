// A copy whose stores go past the caches, for moves of more bytes than caches
// hold: an ordinary store reads the line that it is about to overwrite, so the
// memory moves three bytes for one. What was copied is in no cache afterwards.
// What comes next is asked for in time: a processor that sees a short run alone
// does not guess where the next one begins.
#pragma once

#include "config/byte_runs.hpp"

#include <cstddef>

namespace troupe::models {

/// The ranges do not overlap. Other threads see all of it after
/// `end_stream_copies()`.
void stream_copy(std::byte* target, const std::byte* source,
                 const ByteRuns& runs) noexcept;
void end_stream_copies() noexcept;

} // namespace troupe::models
