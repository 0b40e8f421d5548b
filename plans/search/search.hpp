// Finds a plan: presets as starts, branch and bound where it applies,
// coordinate descent or ReaL's MCMC elsewhere, polishing in the full space with
// the real simulator. The result always passes the plan check, is no worse than
// the best preset and, where nodes differ, than the best plan that was found on
// the nodes of one kind, and comes with a lower bound over all plans of the
// space.
#pragma once

#include "plans/search/search_space.hpp"

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::plans {

enum class SearchMethod : std::uint8_t { automatic, exact, mcmc, descent };
std::string_view to_string(SearchMethod method);
/// Parses auto, exact, mcmc, descent. Throws ConfigError with the nearest one.
SearchMethod parse_search_method(const std::string& name);

/// Which plans with chunks are searched: calls cut into chunks break the
/// barriers that a proof needs.
enum class ChunkSearch : std::uint8_t {
  presets,    ///< whole calls, and what presets do
  afterwards, ///< then the best plans, cut: bound and proof cover whole calls
  everywhere, ///< bound over all plans, no proof
};

struct SearchOptions {
  SearchMethod method = SearchMethod::automatic;
  std::uint64_t seed = 1;
  std::uint64_t iterations = 0; ///< evaluations of local searches; 0: by size
  double seconds = 0;           ///< of local searches; 0: by iterations
  std::map<std::string, std::uint32_t> lag = {}; ///< allowed by the user
  ChunkSearch chunks = ChunkSearch::presets;
  bool polish = true;
  const std::atomic<bool>* stop = nullptr;
};

struct FoundPlan {
  double step_s = 0;
  std::string origin = {}; ///< "exact", "preset megatron", "h100x8 alone", ...
  ExecutionPlan plan = {};
};

/// How a search ended: by itself, by its stop flag, or with another plan than
/// the one that it proved, which is faster with moves counted transfer by
/// transfer (refined_plans.hpp).
enum class SearchEnd : std::uint8_t { finished, interrupted, refined };

struct SearchResult {
  FoundPlan best = {};
  std::vector<FoundPlan> next = {}; ///< up to three others, fastest first
  /// Bound over all plans of the space; over whole calls unless chunks are
  /// searched everywhere or the best plan has them.
  double lower_bound_s = 0;
  /// No plan of whole calls simulates faster, with moves in closed form. Only
  /// for steps of levels with barriers, without lag, where branch and bound
  /// finished; covers packed meshes only if `packed_only` is set.
  bool proved = false;
  /// Beyond 8 devices branch and bound does not try every position, only meshes
  /// packed from either end of the line. The bound holds wherever they are.
  bool packed_only = false;
  SearchEnd end = SearchEnd::finished;
  std::string method = {}; ///< method that ran
  std::uint64_t evaluations = 0;
  std::uint64_t nodes = 0; ///< of branch and bound
  double seconds = 0;
  SpaceCounts counts = {};
  std::vector<std::string> history = {}; ///< one sentence per stage

  double gap() const;
};

/// Searches for a plan. Throws PlanError in one line if nothing fits.
SearchResult search_plan(const PlanProblem& problem, const CostModel& costs,
                         const SearchOptions& options);

/// Returns ", proved", of which meshes, or an empty string.
std::string_view proof_words(const SearchResult& result);
/// Returns "proved: no plan of whole calls on packed meshes simulates faster
/// ...", or why only the bound is proved.
std::string proof_sentence(const SearchResult& result);
/// Returns "best 12.31 s, lower bound 11.70 s, gap 5.2 %".
std::string summary(const SearchResult& result);
/// Returns "next best: 12.80 s, 4.0 % more (preset verl)", one line each.
std::vector<std::string> next_best_lines(const SearchResult& result);

} // namespace troupe::plans
