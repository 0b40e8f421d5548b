// Which option of a group is the first that fits at a position beside the calls
// that are chosen already, each other call of its layer left out. What does not
// fit so does not fit with more calls either, so a search of a layer begins
// there and knows the least time of the group. Asked often for few different
// positions, so answers are remembered until the chosen calls change.
#pragma once

#include "plans/exact_search.hpp"
#include "plans/internal/layer_shapes.hpp"

#include <cstdint>
#include <vector>

namespace troupe::plans::internal {

class FirstFits {
public:
  FirstFits(const ExactInstance& instance, std::uint32_t num_groups)
    : instance_(&instance),
      known_(std::size_t{num_groups} * instance.num_devices) {}

  /// Forgets all answers; from now on calls of `chosen` are there.
  void reset(const SpacePoint& chosen);
  /// An index into the group's options; their number if none fits.
  std::uint32_t of(std::uint32_t call, const SizeGroup& group,
                   std::uint32_t position);

private:
  struct Known {
    std::uint32_t round = 0; ///< of reset, that the answer is of
    std::uint32_t first = 0;
  };
  const ExactInstance* instance_;
  std::vector<Known> known_; ///< by group and position
  std::uint32_t round_ = 0;
  SpacePoint chosen_;
};

} // namespace troupe::plans::internal
