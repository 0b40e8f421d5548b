// Sequences as a cp rank packs them: its runs of each one, as
// plans/workflow/context_cut.hpp cuts them. Every rank of the group has all
// sequences and cuts them alike; nothing is shared between them
// (shared_prompt.hpp).
#pragma once

#include "models/transformer/shared_prompt.hpp"

#include <cstdint>
#include <span>

namespace troupe::net {
class Collectives;
} // namespace troupe::net

namespace troupe::models {

/// Packs the tokens of `rank`, one of `ranks`.
PackedSequences
pack_context(std::span<const std::span<const std::int32_t>> sequences,
             std::uint32_t ranks, std::uint32_t rank);

/// Packs the tokens of this rank of a cp group; null: all, as `pack_shared`.
PackedSequences
pack_own(const net::Collectives* context_group,
         std::span<const std::span<const std::int32_t>> sequences,
         std::span<const std::int64_t> shareable);

} // namespace troupe::models
