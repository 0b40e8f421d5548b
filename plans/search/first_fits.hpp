// Finds the first option of a group that fits at a position together with the
// calls that are already chosen, leaving out the other calls of its level. An
// option that does not fit then does not fit with more calls either, so a
// search of a level starts there and knows the least time of the group. Called
// often for few different positions, so results are cached until the chosen
// calls change.
#pragma once

#include "plans/search/exact_search.hpp"
#include "plans/search/level_shapes.hpp"

#include <cstdint>
#include <vector>

namespace troupe::plans::internal {

class FirstFits {
public:
  FirstFits(const ExactInstance& instance, std::uint32_t num_groups)
    : instance_(&instance),
      known_(std::size_t{num_groups} * instance.num_devices) {}

  /// Clears the cache; from now on the calls of `chosen` are placed.
  void reset(const SpacePoint& chosen);
  /// Returns an index into the group's options; their number if none fits.
  std::uint32_t of(std::uint32_t call, const SizeGroup& group,
                   std::uint32_t position);

private:
  struct Known {
    std::uint32_t round = 0; ///< of reset, in which the result was found
    std::uint32_t first = 0;
  };
  const ExactInstance* instance_;
  std::vector<Known> known_; ///< by group and position
  std::uint32_t round_ = 0;
  SpacePoint chosen_;
};

} // namespace troupe::plans::internal
