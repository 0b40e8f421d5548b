// Finds the first option of a group that fits at a position together with the
// calls that are already chosen, leaving out the other calls of its level. An
// option that does not fit then does not fit with more calls either, so a
// search of a level starts there and knows the least time of the group. Called
// often for few different positions, so results are cached until the chosen
// calls change. Where a call waits for a move from a chosen home, its fastest
// option is not the first one: the least time of all is cached too.
#pragma once

#include "plans/search/exact_search.hpp"
#include "plans/search/level_shapes.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace troupe::plans::internal {

class FirstFits {
public:
  FirstFits(const ExactInstance& instance, std::uint32_t num_groups)
    : instance_(&instance),
      known_(std::size_t{num_groups} * instance.num_devices) {}

  struct Fit {
    std::uint32_t first = 0; ///< in the group's options; their number: none
    double least_s = 0;      ///< of the options from there on, with moves
  };

  /// Clears the cache; from now on the calls of `chosen` are placed, and those
  /// of `moved` wait for their moves.
  void reset(const SpacePoint& chosen, std::vector<std::uint32_t> moved = {});
  Fit of(std::uint32_t call, const SizeGroup& group, std::uint32_t position);
  bool is_moved(std::uint32_t call) const {
    return std::ranges::find(moved_, call) != moved_.end();
  }
  /// Returns the seconds that `call` waits for its move in `point`.
  double move_s(std::uint32_t call, const SpacePoint& point) const {
    return is_moved(call) ? instance_->move_s(call, point) : 0;
  }
  /// Returns at most the same, faster.
  double least_move_s(std::uint32_t call, const SpacePoint& point) const {
    return is_moved(call) && instance_->least_move_s
             ? instance_->least_move_s(call, point)
             : 0;
  }

private:
  struct Known {
    std::uint32_t round = 0; ///< of reset, in which the result was found
    Fit fit = {};
  };
  Fit find(std::uint32_t call, const SizeGroup& group);
  const ExactInstance* instance_;
  std::vector<Known> known_; ///< by group and position
  std::uint32_t round_ = 0;
  SpacePoint chosen_;
  std::vector<std::uint32_t> moved_;
};

} // namespace troupe::plans::internal
