#include "plans/workflow/call_slices.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::plans {

namespace {

/// Returns the name of `key` between two slices.
std::string slice_key(std::uint32_t slice, const std::string& key) {
  return fmt::format("slice{}/{}", slice, key);
}

} // namespace

std::int64_t slice_limit(std::int64_t max_new_tokens, SlicePart slice) {
  const auto count = std::int64_t{slice.count};
  return (max_new_tokens * (std::int64_t{slice.index} + 1) + count - 1) / count;
}

std::uint32_t slice_lag(std::uint32_t lag, SlicePart slice) {
  return lag + slice.count - 1 - slice.index;
}

Call slice_of(const Call& call, SlicePart slice) {
  if (!slice.is_cut())
    return call;
  auto part = call;
  for (const auto& key : call.writes) {
    if (slice.index > 0) {
      const auto so_far = slice_key(slice.index - 1, key);
      part.reads.push_back(so_far);
      part.renames.push_back({so_far, call.argument(key)});
    }
    if (slice.is_last())
      continue;
    const auto kept = slice_key(slice.index, key);
    part.renames.push_back({kept, call.argument(key)});
    std::ranges::replace(part.writes, key, kept);
  }
  return part;
}

} // namespace troupe::plans
