// Sequences with a common prefix - the responses to one prompt, both texts of a
// preference pair - are computed with their prefix once: it is packed as a
// sequence of its own, which each of them continues. What a token sees, and so
// every number of it in a forward pass, is bit-identical to its sequence
// computed alone; in gradients only the order of sums differs.
//
// Shapes: L tokens of all sequences one after the other, T <= L packed tokens.
#pragma once

#include "models/transformer/transformer.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace troupe::models {

struct PackedSequences {
  PackedTokens tokens;                  ///< input of the model
  std::vector<std::int64_t> cu_seqlens; ///< [N+1] offsets into L
  std::vector<std::int32_t> ids_L;
  /// The packed token of each of the L; -1: another cp rank's.
  std::vector<std::int64_t> packed_L;

  PackedSequences() = default;
  /// Takes the ids of these, of which nothing is packed yet.
  explicit PackedSequences(
    std::span<const std::span<const std::int32_t>> sequences);

  std::int64_t num_tokens() const {
    return cu_seqlens.back();
  }
};

/// Packs sequences so that shared prompts are computed once.
/// @param shareable [N] leading tokens of each sequence, its prompt, that are
/// shared with those whose prompts are equal. Empty: nothing is shared.
PackedSequences
pack_shared(std::span<const std::span<const std::int32_t>> sequences,
            std::span<const std::int64_t> shareable);

} // namespace troupe::models
