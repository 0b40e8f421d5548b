// Which dp rank computes which samples: mini-batches as contiguous ranges, each
// balanced over data-parallel peers, each peer's part cut into micro-batches.
// All of it deterministic (I8).
#pragma once

#include "config/base/ids.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace troupe::plans {

/// Samples [first, first + count).
struct SampleRange {
  SampleId first = {};
  std::uint32_t count = 0;

  bool operator==(const SampleRange&) const = default;
};

/// Cuts samples [0, num_samples) into `count` contiguous ranges whose sizes
/// differ by at most one group, the larger ones first. Groups of `group_size`
/// samples stay whole. With more ranges than groups the last are empty. Throws
/// InvariantError unless count >= 1 and groups are full.
std::vector<SampleRange> mini_batches(std::uint32_t num_samples,
                                      std::uint32_t count,
                                      std::uint32_t group_size);

/// Partitions items [0, costs.size()) into `parts` lists of nearly equal cost
/// by the largest differencing method (Karmarkar and Karp, 1982), as in verl's
/// seqlen_balancing. Lists are in order of falling cost, items ascending.
/// `equal_count`: the lengths of the lists differ by at most one.
std::vector<std::vector<std::uint32_t>>
balance(std::span<const std::uint64_t> costs, std::uint32_t parts,
        bool equal_count);

/// Returns balanced micro-batches of at most `budget` tokens, as few as
/// possible but at least `least_parts` (if there are so many samples). A sample
/// longer than the budget is alone, and such samples come first; no samples
/// give no lists.
std::vector<std::vector<std::uint32_t>>
micro_batches(std::span<const std::uint64_t> tokens, std::uint64_t budget,
              std::uint32_t least_parts = 1);

} // namespace troupe::plans
