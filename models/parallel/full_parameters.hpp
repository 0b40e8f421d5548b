// A plane of the whole model, assembled from its parts, bit for bit: planes
// that z cuts are gathered over dp, then each parameter's boxes over tp (dealt
// experts are sent by their owner), then the stages' tensors over pp. On a
// single device nothing is copied. Used for files: tensors are saved whole for
// any strategy.
#pragma once

#include "models/parallel/local_model.hpp"
#include "models/parallel/parameters.hpp"
#include "models/parallel/run_context.hpp"

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace troupe::models {

class FullParameters {
public:
  /// Gathers the plane. Collective over all devices for which `gives` is true;
  /// those with a false `keeps` only contribute. Throws FailureError like any
  /// collective.
  FullParameters(const LocalModel& part, const Parameters& parameters,
                 Plane plane, const Groups& groups, bool keeps);
  /// Returns true if the device has elements to contribute: dp replicas of an
  /// uncut plane with all experts do not.
  static bool gives(const LocalModel& part, Plane plane);

  /// Returns the elements of the whole model's parameter `index`, row-major.
  /// Valid as long as this and the plane.
  std::span<const float> of(std::size_t index) const {
    return tensors_[index];
  }

private:
  std::unique_ptr<const net::HostRead> values_;
  std::vector<float> part_; ///< this part, gathered if z cut it
  std::vector<std::vector<float>> owned_;
  std::vector<std::span<const float>> tensors_;
};

} // namespace troupe::models
