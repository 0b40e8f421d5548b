// A copy whose stores go past the caches, for moves of more bytes than caches
// hold: an ordinary store reads the line that it is about to overwrite, so the
// memory moves three bytes for one. What was copied is in no cache afterwards.
// What comes next is asked for in time: a processor that sees a short run alone
// does not guess where the next one begins.
#pragma once

#include <cstddef>

namespace troupe::models {

/// As many runs of `bytes`, from one to the next as far apart on either side as
/// the strides say.
struct CopyRuns {
  std::byte* target;
  const std::byte* source;
  std::size_t bytes;
  std::size_t runs = 1;
  std::size_t target_stride = 0;
  std::size_t source_stride = 0;
};

/// The ranges do not overlap. Other threads see all of it after
/// `end_stream_copies()`.
void stream_copy(const CopyRuns& copy) noexcept;
void end_stream_copies() noexcept;

} // namespace troupe::models
