// Finds where tokens that are sorted by logit would have been cut, without
// sorting: by radix, from the highest bits on. Ranks of tokens are integers
// that no two tokens share, larger logits first, equal ones by id, and weights
// are integers too: the result is exact and does not depend on the order of
// lanes. Equal logits weigh the same.
#pragma once

#include "models/gpu/kernels/grid.hpp"

#include <bit>
#include <cstdint>

namespace troupe::models::gpu {

inline constexpr int token_id_bits = 22; ///< of a rank: 4 M tokens

/// Returns the rank of a token; a larger one comes first.
constexpr std::uint64_t token_rank(float logit, std::uint32_t id) {
  constexpr std::uint32_t sign = 0x80000000U;
  const auto bits = std::bit_cast<std::uint32_t>(logit == 0 ? 0.0F : logit);
  const std::uint32_t rising = (bits & sign) != 0 ? ~bits : bits | sign;
  return (std::uint64_t{rising} << token_id_bits)
         | ((1U << token_id_bits) - 1 - id);
}

/// Returns the logit of a rank.
constexpr float logit_of_rank(std::uint64_t rank) {
  constexpr std::uint32_t sign = 0x80000000U;
  const auto rising = static_cast<std::uint32_t>(rank >> token_id_bits);
  return std::bit_cast<float>((rising & sign) != 0 ? rising & ~sign : ~rising);
}

struct RadixSelect {
  static constexpr int digit_bits = 11;
  static constexpr int bins = 1 << digit_bits;
  static constexpr int groups = 64; ///< of bins, each added up by a lane
  static constexpr int group_bins = bins / groups;

  /// The bin of the last digit that the cut is in.
  struct Choice {
    std::uint64_t prefix;  ///< highest digits of the ranks in it
    std::uint64_t missing; ///< weight that these must add
    std::uint64_t weight;  ///< of all of these
  };
  struct Shared {
    std::uint64_t bin[bins];
    std::uint64_t group[groups];
    Choice choice;
  };
};

/// Describes the cut that is looked for.
struct RadixTarget {
  std::uint32_t tokens; ///< of the vocabulary
  std::uint64_t weight; ///< at least 1, at most that of all tokens
  bool splits_ties;     ///< or takes all tokens of a logit, or none
};

/// Adds the weights of the tokens whose ranks begin with `prefix`, by the digit
/// at `shift`, and chooses the bin at which `missing` is reached from above.
template <int N, class Rank, class Weight>
TROUPE_KERNEL RadixSelect::Choice
radix_digit(Block<N> block, RadixSelect::Shared& shared, std::uint32_t tokens,
            RadixSelect::Choice before, int shift, Rank rank, Weight weight) {
  using Select = RadixSelect;
  block.each([&](int lane) {
    for (int i = lane; i < Select::bins; i += N)
      shared.bin[i] = 0;
  });
  block.each([&](int lane) {
    for (auto id = static_cast<std::uint32_t>(lane); id < tokens; id += N) {
      const std::uint64_t mine = rank(id);
      if (mine >> (shift + Select::digit_bits) == before.prefix)
        add_shared(&shared.bin[(mine >> shift) & (Select::bins - 1)],
                   weight(mine));
    }
  });
  block.each([&](int lane) {
    if (lane >= Select::groups)
      return;
    std::uint64_t total = 0;
    for (int i = 0; i < Select::group_bins; ++i)
      total += shared.bin[lane * Select::group_bins + i];
    shared.group[lane] = total;
  });
  block.each([&](int lane) {
    if (lane >= Select::groups)
      return;
    std::uint64_t above = 0;
    for (int i = Select::groups - 1; i > lane; --i)
      above += shared.group[i];
    for (int i = Select::group_bins - 1; i >= 0; --i) {
      const int digit = lane * Select::group_bins + i;
      const std::uint64_t here = shared.bin[digit];
      if (above < before.missing && before.missing <= above + here)
        shared.choice = {(before.prefix << Select::digit_bits)
                           | static_cast<unsigned>(digit),
                         before.missing - above, here};
      above += here;
    }
  });
  return block.uniform(shared.choice);
}

/// Returns the lowest rank that is kept: adding weights from the highest rank
/// on, the one at which the sum reaches the target. `rank` is a function of
/// ids, `weight` one of ranks.
template <int N, class Rank, class Weight>
TROUPE_KERNEL std::uint64_t
radix_select(Block<N> block, RadixSelect::Shared& shared,
             const RadixTarget& target, Rank rank, Weight weight) {
  RadixSelect::Choice choice{0, target.weight, 0};
  for (int shift = 4 * RadixSelect::digit_bits; shift >= 0;
       shift -= RadixSelect::digit_bits) {
    choice
      = radix_digit(block, shared, target.tokens, choice, shift, rank, weight);
    if (shift != token_id_bits)
      continue;
    // the digits left are of ids: needed only where equal logits are split
    const std::uint64_t least = choice.prefix << token_id_bits;
    const bool all = choice.weight - choice.missing < weight(least);
    if (all || !target.splits_ties)
      return least;
  }
  return choice.prefix;
}

} // namespace troupe::models::gpu
