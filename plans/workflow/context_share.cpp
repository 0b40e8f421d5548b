#include "plans/workflow/context_share.hpp"

#include "config/base/arithmetic.hpp"

#include <algorithm>

namespace troupe::plans {

std::uint32_t most_context_ranks(std::int64_t longest_tokens) {
  const auto tokens
    = static_cast<std::uint64_t>(std::max<std::int64_t>(longest_tokens, 0));
  return static_cast<std::uint32_t>(std::max<std::uint64_t>(
    1, tokens / (least_context_tiles * context_tile_rows)));
}

ContextShare::ContextShare(std::uint64_t length, std::uint32_t ranks)
  : length_(length),
    ranks_(ranks) {}

std::uint64_t ContextShare::tokens() const {
  return ranks_ == 1 ? length_
                     : std::min(length_, 2 * ceil_div(length_, 2 * ranks_));
}

/// The last runs of the sequence are of different ranks up to its middle, from
/// where on they are of those again, of the last rank first.
std::uint64_t ContextShare::last_tokens(std::uint64_t count) const {
  if (ranks_ == 1)
    return count;
  const auto run = ceil_div(length_, 2 * ranks_);
  const auto late = length_ - length_ / 2;
  return std::min(count, run)
         + (count > late ? std::min(count - late, run) : 0);
}

} // namespace troupe::plans
