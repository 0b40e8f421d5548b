#include "models/transformer/context_sequences.hpp"

#include "models/kernels/attention_parts.hpp"
#include "net/collectives/collectives.hpp"
#include "plans/workflow/context_cut.hpp"

#include <numeric>

namespace troupe::models {

namespace {

// Packs the tokens of a run after those before.
void append_run(const plans::TokenRun& run, PackedSequences& packed) {
  const std::int64_t first
    = packed.cu_seqlens[run.sequence] + static_cast<std::int64_t>(run.first);
  const auto count = static_cast<std::int64_t>(run.count);
  std::vector<std::int32_t>& ids_T = packed.tokens.ids_T;
  std::iota(packed.packed_L.begin() + first,
            packed.packed_L.begin() + first + count, std::ssize(ids_T));
  ids_T.insert(ids_T.end(), packed.ids_L.begin() + first,
               packed.ids_L.begin() + first + count);
}

} // namespace

PackedSequences
pack_context(std::span<const std::span<const std::int32_t>> sequences,
             std::uint32_t ranks, std::uint32_t rank) {
  PackedSequences packed(sequences);
  std::vector<std::uint64_t> lengths;
  for (const std::span<const std::int32_t> ids : sequences)
    lengths.push_back(ids.size());
  const auto cut = plans::cut_context(lengths, ranks, attention_block_rows);
  for (const plans::TokenRun& run : cut[rank])
    append_run(run, packed);
  packed.tokens.context = context_rows(cut, rank);
  packed.tokens.positions_T = packed.tokens.context->positions_T;
  packed.tokens.cu_seqlens = {0, std::ssize(packed.tokens.ids_T)};
  return packed;
}

PackedSequences
pack_own(const net::Collectives* context_group,
         std::span<const std::span<const std::int32_t>> sequences,
         std::span<const std::int64_t> shareable) {
  return context_group == nullptr
           ? pack_shared(sequences, shareable)
           : pack_context(sequences, context_group->size(),
                          context_group->rank());
}

} // namespace troupe::models
