// Searches that walk from plan to plan and ask the simulator each time: for
// graphs that branch and bound does not cover (lag, chunks, calls without layer
// barriers), for polishing, and for comparison with the field.
#pragma once

#include "plans/internal/point_step.hpp"
#include "plans/search_space.hpp"

#include <atomic>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace troupe::plans {

/// The simulator's step time of points of a space; infinity where they do not
/// fit. Remembers the best few different plans.
class PointCost {
public:
  PointCost(const SearchSpace& space, std::map<std::string, std::uint32_t> lag)
    : space_(space),
      whole_step_(space),
      cores_(space.problem().hardware, space.problem().cluster),
      lag_(std::move(lag)) {}

  double step_s(const SpacePoint& point);
  std::uint64_t evaluations() const {
    return evaluations_;
  }
  struct Scored {
    double step_s = 0;
    SpacePoint point = {};
  };
  /// Fastest first; different options, not only other positions.
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
  internal::PointStep whole_step_; ///< where there are no chunks and no lag
  SharedCores cores_; ///< where there are any, devices are not runs of them
  std::map<std::string, std::uint32_t> lag_;
  std::uint64_t evaluations_ = 0;
  std::vector<Scored> best_;
};

/// When a walk ends.
struct WalkLimits {
  std::uint64_t evaluations = 1000;
  double seconds = 0; ///< of wall time; 0: none (results then never vary)
  const std::atomic<bool>* stop = nullptr;
  bool whole_calls = false; ///< options with chunks are left out
};

class Walk {
public:
  Walk(const SearchSpace& space, PointCost& cost, WalkLimits limits,
       std::uint64_t seed);

  /// A plan that fits: every call on all devices, else what `shrink` makes of
  /// that and of random ones. False if none was found; `point` is then the one
  /// with the smallest peak.
  bool find_start(SpacePoint& point);
  /// Coordinate descent on the fullest device, until the point fits.
  bool shrink(SpacePoint& point) const;
  SpacePoint random_point();
  /// Coordinate descent: the best option and position of one call after the
  /// other, then what leaves the device of all calls together, until nothing
  /// improves. Returns the step time.
  double descend(SpacePoint& point);
  /// Descents from random points until the limits end.
  void restart();
  /// Metropolis walk of ReaL (Mei et al. 2024, section 5), temperature in
  /// seconds falling from a tenth of the start's step time, with restarts.
  void anneal();
  bool ended() const;

private:
  struct Candidate {
    std::uint32_t option = 0;
    std::uint32_t position = 0;
  };
  std::vector<Candidate> candidates(const SpacePoint& point,
                                    std::size_t call) const;
  bool may_have(const CallOption& option) const {
    return option.chunks == 1 || !limits_.whole_calls;
  }
  bool improve_call(SpacePoint& point, std::size_t call, double& best_s);
  void improve_offloads(SpacePoint& next, std::size_t call, SpacePoint& point,
                        double& best_s);
  void fill_rooms(SpacePoint& point) const;
  bool has_most_answers(std::size_t call, std::uint32_t option) const;
  void take_better(SpacePoint next, SpacePoint& point, double& best_s);
  std::uint32_t draw(std::size_t below);

  const SearchSpace& space_;
  PointCost& cost_;
  WalkLimits limits_;
  std::mt19937_64 random_;
  std::uint64_t first_evaluation_;
  double begin_s_;
};

} // namespace troupe::plans
