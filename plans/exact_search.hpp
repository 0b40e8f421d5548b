// Branch and bound over all plans of a step whose calls form layers with
// barriers (PPO: generate; score; train): which option each call takes, which
// calls of a layer run side by side and which one after the other.
//
// Conflicts of up to three intervals on a line have few patterns: lanes side by
// side, calls of a lane one after the other; or one call before or after two
// that run side by side. A layer's time under a pattern is exact. Each pattern
// is realised at every position on up to 8 devices, beyond at canonical ones
// (packed from the left in every order, the last lane at the right end too);
// positions matter only for moves and memory.
//
// Layers add up to no more than the step takes in the simulator. A move runs on
// the devices of both its ends as soon as the step begins, so it adds to its
// call where it must: in the first layer; in the second behind a single call
// that shares a device with either end (whichever of the two runs first delays
// the layer). Elsewhere it may hide and adds nothing; likewise a reload, on the
// devices of its call alone. A complete plan takes what the simulator says
// (`step_s`), so a closed tree proves that no plan of these positions simulates
// faster. Calls side by side that share cores (shared_cores.hpp) take at least
// their seconds alone, and a layer at least its work by all cores.
//
// Method: layers of training first (their replicas are the homes), entries of a
// layer fastest first, depth first; a branch ends where its time and the least
// of the other layers, beside the trainings, reach the best plan. So a good
// plan at hand (`known_s`) is what makes it fast.
#pragma once

#include "plans/search_space.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

namespace troupe::plans {

struct ExactOption {
  std::uint32_t num_devices = 1;
  double seconds = 0;
  /// That it keeps at work while it runs alone.
  double cores = 1;
  /// Of the task before it that brings its planes from host memory, which runs
  /// meanwhile where its devices have nothing to do.
  double comes_s = 0;
};

struct ExactCall {
  std::vector<ExactOption> options = {}; ///< fastest first
  std::int32_t home = -1; ///< the call whose replica it is refreshed from
  bool trains = false;
};

struct ExactInstance {
  std::uint32_t num_devices = 1;
  /// Of all nodes; infinity: no two calls share any.
  double num_cores = std::numeric_limits<double>::infinity();
  std::vector<ExactCall> calls = {};
  std::vector<std::vector<std::uint32_t>> layers = {}; ///< 1 to 3 calls each
  /// First well-lying position from `from` on for `count` devices.
  std::function<std::uint32_t(std::uint32_t from, std::uint32_t count)> align
    = {};
  /// Seconds before the call starts; 0 where it shares the home's replica.
  std::function<double(std::uint32_t call, const SpacePoint& point)> move_s
    = {};
  /// Memory, with calls that are not chosen yet (`not_chosen`) left out.
  std::function<bool(const SpacePoint& point)> fits = {};
  /// Seconds of a whole plan, at least what its layers add up to; empty: that.
  std::function<double(const SpacePoint& point)> step_s = {};
};

struct ExactResult {
  bool found = false;
  bool proved = false; ///< the tree was closed
  SpacePoint point = {};
  double seconds = 0;
  /// Of all plans, wherever their meshes lie: no moves, no shared memory.
  double lower_bound_s = 0;
  std::uint64_t nodes = 0;
  std::uint64_t leaves = 0; ///< whole plans that were simulated
};

/// On a line of at most so many devices every position is tried.
inline constexpr std::uint32_t exact_all_positions = 8;

/// `stop` ends the search early, `known_s` is the time of a plan at hand (0:
/// none): nothing slower is looked for.
ExactResult exact_search(const ExactInstance& instance, double known_s,
                         const std::atomic<bool>* stop,
                         std::uint64_t node_limit);

/// Seconds of a layer whose calls, at these positions, run in the best order.
double layer_makespan(const std::vector<double>& seconds,
                      const std::vector<std::uint32_t>& positions,
                      const std::vector<std::uint32_t>& num_devices);

} // namespace troupe::plans
