// Searches that walk from plan to plan and run the simulator each time: for
// graphs that branch and bound does not cover (lag, chunks, calls without level
// barriers), for polishing, and for comparison with published methods.
#pragma once

#include "config/base/clock.hpp"
#include "plans/search/search_space.hpp"
#include "plans/search/search_step.hpp"

#include <atomic>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace troupe::plans {

/// Simulated step times of points of a space; infinity where they do not fit.
/// Remembers the best few different plans.
class PointCost {
public:
  PointCost(const SearchSpace& space, std::map<std::string, std::uint32_t> lag)
    : space_(space),
      whole_step_(space),
      cores_(space.problem().hardware, space.problem().cluster),
      lag_(std::move(lag)) {}

  double step_s(const SpacePoint& point);
  /// Returns the same if it is below `limit_s`; otherwise it may return
  /// infinity, without simulating a point that is not worth remembering.
  double step_s_below(double limit_s, const SpacePoint& point);
  std::uint64_t evaluations() const {
    return evaluations_;
  }
  struct Scored {
    double step_s = 0;
    SpacePoint point = {};
  };
  /// Returns them fastest first; they differ in options, not only in positions.
  const std::vector<Scored>& best() const {
    return best_;
  }
  const std::map<std::string, std::uint32_t>& lag() const {
    return lag_;
  }

private:
  double scheduled_s(const SpacePoint& point) const;
  void remember(double step_s, const SpacePoint& point);

  const SearchSpace& space_;
  internal::SearchStep whole_step_; ///< where there are no chunks and no lag
  SharedCores cores_; ///< if shared, devices are not merged into runs
  std::map<std::string, std::uint32_t> lag_;
  std::uint64_t evaluations_ = 0;
  std::vector<Scored> best_;
};

/// Limits that end a walk.
struct WalkLimits {
  std::uint64_t evaluations = 1000;
  double seconds = 0; ///< of wall time; 0: none (results never vary)
  const std::atomic<bool>* stop = nullptr;
  bool whole_calls = false; ///< leaves out options with chunks
};

class Walk {
public:
  Walk(const SearchSpace& space, PointCost& cost, WalkLimits limits,
       std::uint64_t seed);

  /// Finds a plan that fits: every call on all devices, else what `shrink`
  /// makes of that, of random plans and of the leanest. Returns false if none
  /// was found; `point` is then the one with the smallest peak.
  bool find_start(SpacePoint& point);
  /// Lowers the peak of the fullest device by coordinate descent, until the
  /// point fits.
  bool shrink(SpacePoint& point) const;
  /// Returns each call with the option that always holds least on its devices:
  /// what can leave has left, for all calls together, which steps of one call
  /// may never reach.
  SpacePoint leanest_point() const;
  /// Lets each generation decode as many responses at once as fit beside the
  /// rest of the point.
  void fill_rooms(SpacePoint& point) const;
  SpacePoint random_point();
  /// Coordinate descent: the best option and position of one call after the
  /// other, then which planes of all calls together leave the device, until
  /// nothing improves. Returns the step time.
  double descend(SpacePoint& point);
  /// Descends from random points until the limits are reached.
  void restart();
  /// Runs the Metropolis walk of ReaL (Mei et al. 2024, section 5), temperature
  /// in seconds falling from a tenth of the start's step time, with restarts.
  void anneal();
  bool ended() const;

private:
  struct Candidate {
    std::uint32_t option = 0;
    std::uint32_t position = 0;
  };
  std::vector<Candidate> candidates(const SpacePoint& point,
                                    std::size_t call) const;
  std::vector<std::uint32_t>
  positions_of(const CallOption& option,
               const std::vector<std::uint32_t>& starts) const;
  bool may_have(const CallOption& option) const {
    return option.chunks == 1 || !limits_.whole_calls;
  }
  bool improve_call(SpacePoint& point, std::size_t call, double& best_s);
  void improve_offloads(SpacePoint& next, std::size_t call, SpacePoint& point,
                        double& best_s);
  void take_better(SpacePoint next, SpacePoint& point, double& best_s);
  std::uint32_t draw(std::size_t below);

  const SearchSpace& space_;
  PointCost& cost_;
  WalkLimits limits_;
  std::mt19937_64 random_;
  std::uint64_t first_evaluation_;
  Stopwatch watch_;
};

} // namespace troupe::plans
