// The rows of one cp rank of a micro-batch that plans/workflow/context_cut.hpp
// has cut: its own tokens, packed run after run, and the keys that they see, as
// attention takes them (models/kernels/attention_pieces.hpp). Pure; ranks
// gather blocks of their rows, and `sources_K` says where each key is in these.
#pragma once

#include "models/kernels/attention_pieces.hpp"
#include "plans/workflow/context_cut.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace troupe::models {

struct ContextRows {
  std::vector<std::int32_t> positions_T; ///< of the rank's tokens
  std::vector<AttentionPiece> pieces;    ///< one for each of its runs
  /// [K] rows of the ranks' blocks, that are one after the other: all tokens of
  /// the sequences that the rank has tokens of, in order.
  std::vector<std::int64_t> sources_K;
  std::int64_t block = 0; ///< rows of a rank's block: the most that one has

  std::int64_t queries() const {
    return static_cast<std::int64_t>(positions_T.size());
  }
  std::int64_t keys() const {
    return static_cast<std::int64_t>(sources_K.size());
  }
};

/// Returns the rows of `rank`, of the runs of all ranks.
ContextRows context_rows(std::span<const std::vector<plans::TokenRun>> cut,
                         std::uint32_t rank);

} // namespace troupe::models
