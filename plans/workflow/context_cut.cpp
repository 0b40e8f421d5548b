#include "plans/workflow/context_cut.hpp"

#include "config/base/error.hpp"

#include <algorithm>
#include <tuple>

namespace troupe::plans {

namespace {

using RunList = std::vector<TokenRun>;

struct RankRuns {
  RunList runs;
  std::uint64_t tokens = 0;

  void add(const TokenRun& run) {
    tokens += run.count;
    runs.push_back(run);
  }
};

/// Gives each rank its early and its late run; the last one's are adjacent.
void cut_sequence(std::uint32_t sequence, std::uint64_t length,
                  std::vector<RankRuns>& ranks) {
  const std::uint64_t parts = 2 * ranks.size();
  const auto begin = [&](std::uint64_t part) { return part * length / parts; };
  const auto add = [&](RankRuns& rank, std::uint64_t from, std::uint64_t to) {
    rank.add({sequence, begin(from), begin(to) - begin(from)});
  };
  for (std::uint64_t r = 0; r + 1 < ranks.size(); ++r) {
    add(ranks[r], r, r + 1);
    add(ranks[r], parts - 1 - r, parts - r);
  }
  add(ranks.back(), ranks.size() - 1, ranks.size() + 1);
}

} // namespace

std::vector<RunList> cut_context(std::span<const std::uint64_t> lengths,
                                 std::uint32_t ranks, std::uint64_t tile_rows) {
  TROUPE_CHECK(ranks >= 1 && tile_rows >= 1, "at least one of each");
  std::vector<RankRuns> found(ranks);
  std::vector<TokenRun> whole;
  for (std::uint32_t i = 0; i < lengths.size(); ++i)
    if (ranks > 1 && lengths[i] >= 2 * ranks * tile_rows)
      cut_sequence(i, lengths[i], found);
    else if (lengths[i] > 0)
      whole.push_back({i, 0, lengths[i]});
  std::ranges::stable_sort(whole, std::ranges::greater{}, &TokenRun::count);
  for (const TokenRun& run : whole)
    std::ranges::min_element(found, {}, &RankRuns::tokens)->add(run);
  std::vector<RunList> cut;
  for (RankRuns& rank : found) {
    std::ranges::sort(rank.runs, {}, [](const TokenRun& run) {
      return std::tuple{run.sequence, run.first};
    });
    cut.push_back(std::move(rank.runs));
  }
  return cut;
}

} // namespace troupe::plans
