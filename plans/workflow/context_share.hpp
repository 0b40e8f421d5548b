// Assumptions of plans about sequences that are cut (context_cut.hpp): for how
// many ranks it is worth it, and the most that one rank has. Upper bounds, from
// lengths alone, of sequences that are cut. Beside them a rank may have more
// tokens than others, by up to one sequence that stays whole.
#pragma once

#include "config/base/strategy.hpp"
#include "plans/workflow/workflow.hpp"

#include <cstdint>

namespace troupe::plans {

/// Returns how many neighbouring dp ranks share the samples of a call. A
/// generation, as of an evaluation where its role trains, cuts none: all dp
/// ranks have samples of their own.
constexpr std::uint32_t ranks_of_a_sample(CallKind kind,
                                          const Strategy& strategy) {
  return kind == CallKind::generate ? 1 : strategy.cp;
}

/// Rows of a tile: a block of attention has as many
/// (models/kernels/attention_parts.hpp).
inline constexpr std::uint64_t context_tile_rows = 96;
/// Tiles of the longest sequence that each rank has at least: with fewer,
/// gathers of keys cost more than shared attention saves.
inline constexpr std::uint64_t least_context_tiles = 4;
/// Returns the most ranks for sequences of at most this many tokens.
std::uint32_t most_context_ranks(std::int64_t longest_tokens);

/// The most that one rank has of a sequence that is cut.
class ContextShare {
public:
  ContextShare(std::uint64_t length, std::uint32_t ranks);

  std::uint64_t tokens() const;
  /// Returns the most of the sequence's last `count` tokens.
  std::uint64_t last_tokens(std::uint64_t count) const;

private:
  std::uint64_t length_;
  std::uint64_t ranks_;
};

} // namespace troupe::plans
