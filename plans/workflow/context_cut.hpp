// Which cp rank has which tokens of a micro-batch
// (docs/context_parallelism.md). Late tokens see many others, so a long
// sequence is cut into twice as many runs as there are ranks, and each rank
// gets an early one and a late one: all have about the same number of pairs of
// a token and one that it sees. The cut depends on lengths alone, so it is
// known before the run (I8).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace troupe::plans {

/// Tokens [first, first + count) of a sequence of the micro-batch.
struct TokenRun {
  std::uint32_t sequence = 0;
  std::uint64_t first = 0;
  std::uint64_t count = 0;

  bool operator==(const TokenRun&) const = default;
};

/// Returns the runs of each rank, by sequence and then by first token. A
/// sequence shorter than 2 `ranks` tiles of `tile_rows` rows stays whole on one
/// rank: such sequences go, the longest first, to the rank with the fewest
/// tokens, as what is computed for each token outweighs their pairs.
std::vector<std::vector<TokenRun>>
cut_context(std::span<const std::uint64_t> lengths, std::uint32_t ranks,
            std::uint64_t tile_rows);

} // namespace troupe::plans
