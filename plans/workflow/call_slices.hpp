// Slices of a generation (partial rollouts): a response is made in several
// parts, each a task of its own that continues the rows of the one before, on
// newer weights. Which slice makes a token follows from its position alone, so
// the version of every token is a function of the plan. Pure functions.
#pragma once

#include "plans/workflow/workflow.hpp"

#include <cstdint>

namespace troupe::plans {

/// Slice `index` of `count`; the default is a whole generation.
struct SlicePart {
  std::uint32_t index = 0;
  std::uint32_t count = 1;

  bool operator==(const SlicePart&) const = default;
  bool is_cut() const {
    return count > 1;
  }
  bool is_last() const {
    return index + 1 == count;
  }
};

/// Returns the number of new tokens at which the slice ends:
/// ceil(max_new_tokens * (index + 1) / count).
std::int64_t slice_limit(std::int64_t max_new_tokens, SlicePart slice);

/// Returns the lag of a slice of a call with this lag: each slice is one step
/// ahead of the next.
std::uint32_t slice_lag(std::uint32_t lag, SlicePart slice);

/// Returns the call as this slice runs it: it also reads what the slice before
/// wrote, and only the last one writes the call's keys. Its code knows both by
/// the same names (Rename).
Call slice_of(const Call& call, SlicePart slice);

} // namespace troupe::plans
