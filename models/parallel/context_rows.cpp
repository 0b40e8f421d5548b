#include "models/parallel/context_rows.hpp"

#include <algorithm>
#include <map>

namespace troupe::models {

namespace {

using plans::TokenRun;

/// A run and the place of its rows in the gathered blocks.
struct PlacedRun {
  TokenRun run;
  std::int64_t row = 0; ///< of its first token, in the rank's block
  std::int64_t rank = 0;
};

/// Runs of all ranks by sequence, each by its first token.
using RunsOfSequences = std::map<std::uint32_t, std::vector<PlacedRun>>;

std::int64_t signed_count(std::uint64_t count) {
  return static_cast<std::int64_t>(count);
}

RunsOfSequences placed_runs(std::span<const std::vector<TokenRun>> cut,
                            std::int64_t& block) {
  RunsOfSequences all;
  block = 0;
  for (std::size_t rank = 0; rank < cut.size(); ++rank) {
    std::int64_t row = 0;
    for (const TokenRun& run : cut[rank]) {
      all[run.sequence].push_back({run, row, signed_count(rank)});
      row += signed_count(run.count);
    }
    block = std::max(block, row);
  }
  for (auto& [sequence, runs] : all)
    std::ranges::sort(runs, {}, [](const PlacedRun& p) { return p.run.first; });
  return all;
}

/// Appends the rows of all tokens of a sequence.
void append_sequence(const std::vector<PlacedRun>& runs, ContextRows& rows) {
  for (const PlacedRun& placed : runs)
    for (std::int64_t i = 0; i < signed_count(placed.run.count); ++i)
      rows.sources_K.push_back(placed.rank * rows.block + placed.row + i);
}

} // namespace

ContextRows context_rows(std::span<const std::vector<TokenRun>> cut,
                         std::uint32_t rank) {
  ContextRows rows;
  const RunsOfSequences all = placed_runs(cut, rows.block);
  std::map<std::uint32_t, std::int64_t> first_keys;
  for (const TokenRun& run : cut[rank]) {
    const auto [known, is_new]
      = first_keys.try_emplace(run.sequence, rows.keys());
    if (is_new)
      append_sequence(all.at(run.sequence), rows);
    rows.pieces.push_back({rows.queries(), signed_count(run.count),
                           known->second, signed_count(run.first)});
    for (std::uint64_t i = 0; i < run.count; ++i)
      rows.positions_T.push_back(static_cast<std::int32_t>(run.first + i));
  }
  return rows;
}

} // namespace troupe::models
