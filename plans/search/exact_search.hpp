// Branch and bound over all plans of a step whose calls form levels with
// barriers (PPO: generate; score; train): which option each call takes, which
// calls of a level run side by side and which one after the other.
//
// Conflicts of up to three intervals on a line have few patterns: lanes side by
// side, calls of a lane one after the other; or one call before or after two
// that run side by side. A level's time under a pattern is exact. Each pattern
// is tried at every position on up to 8 devices, beyond that at canonical ones
// (packed from the left in every order, the last lane at the right end too);
// positions matter only for moves and memory.
//
// The sum over levels is at most the simulated step. A move runs on the devices
// of both its ends as soon as the step begins, so it adds to its call where it
// must: in the first level; in the second after a single call that shares a
// device with either end (whichever of the two runs first delays the level).
// Elsewhere it may be hidden and adds nothing; the same holds for a reload, on
// the devices of its call alone. A complete plan takes its simulated time
// (`step_s`), so a closed tree proves that no plan of these positions simulates
// faster. Calls side by side that share cores (shared_cores.hpp) take at least
// their seconds alone, and a level at least its work divided by all cores.
//
// Method: levels of training first (their replicas are the homes), entries of a
// level fastest first (level_entries.hpp), depth first; a branch ends where its
// time plus the least of the other levels, given the trainings, reaches the
// best plan; so does a training alone, before those beside it are tried. So a
// good initial plan (`known_s`) is what makes it fast. A move is worked out
// only where its lower bound (`least_move_s`) does not decide.
#pragma once

#include "plans/search/search_space.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

namespace troupe::plans {

struct ExactOption {
  std::uint32_t num_devices = 1;
  double seconds = 0;
  /// Cores that the option uses while it runs alone.
  double cores = 1;
  /// Seconds of the reload before it, which overlaps with other work while its
  /// devices are idle.
  double comes_s = 0;
};

struct ExactCall {
  std::vector<ExactOption> options = {}; ///< fastest first
  std::int32_t home = -1; ///< call whose replica it is refreshed from
  bool trains = false;
};

struct ExactInstance {
  std::uint32_t num_devices = 1;
  /// Cores of all nodes; infinity: no two calls share any.
  double num_cores = std::numeric_limits<double>::infinity();
  std::vector<ExactCall> calls = {};
  std::vector<std::vector<std::uint32_t>> levels = {}; ///< 1 to 3 calls each
  /// Returns the first aligned position at or after `from` for `count` devices.
  std::function<std::uint32_t(std::uint32_t from, std::uint32_t count)> align
    = {};
  /// Returns the seconds of the move before the call; 0 where it shares the
  /// home's replica.
  std::function<double(std::uint32_t call, const SpacePoint& point)> move_s
    = {};
  /// Returns at most `move_s`, much faster; empty: 0. An entry that this rules
  /// out needs no `move_s`.
  std::function<double(std::uint32_t call, const SpacePoint& point)>
    least_move_s = {};
  /// Returns whether a point fits in memory; calls that are not chosen yet
  /// (`not_chosen`) count nothing.
  std::function<bool(const SpacePoint& point)> fits = {};
  /// Returns the seconds of a whole plan, at least the sum of its levels;
  /// empty: that sum.
  std::function<double(const SpacePoint& point)> step_s = {};
};

struct ExactResult {
  bool found = false;
  bool proved = false; ///< the tree was closed
  SpacePoint point = {};
  double seconds = 0;
  /// Bound over all plans, wherever their meshes are: without moves and shared
  /// memory.
  double lower_bound_s = 0;
  std::uint64_t nodes = 0;
  std::uint64_t leaves = 0; ///< whole plans that were simulated
};

/// Longest line of devices on which every position is tried.
inline constexpr std::uint32_t exact_all_positions = 8;

/// Searches all plans. `stop` ends the search early; `known_s` is the time of a
/// known plan (0: none): only faster ones are searched for.
ExactResult exact_search(const ExactInstance& instance, double known_s,
                         const std::atomic<bool>* stop,
                         std::uint64_t node_limit);

/// Returns the seconds of a level whose calls, at these positions, run in the
/// best order.
double level_makespan(const std::vector<double>& seconds,
                      const std::vector<std::uint32_t>& positions,
                      const std::vector<std::uint32_t>& num_devices);

} // namespace troupe::plans
