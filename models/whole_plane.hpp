// A plane of the whole model, put together from its parts, bit for bit: planes
// that z cut are gathered over the copies, then each parameter's boxes over the
// tensor peers, then the stages' tensors over the pipeline. Where one device
// has everything, nothing is copied. For files: tensors are saved whole,
// whatever the strategy was.
#pragma once

#include "models/model_part.hpp"
#include "models/parameters.hpp"
#include "models/run_context.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace troupe::models {

class WholePlane {
public:
  /// All devices that `gives` names call it together; those for which `keeps`
  /// is false only give. Throws FailureError like any collective.
  WholePlane(const ModelPart& part, const Parameters& parameters, Plane plane,
             const Groups& groups, bool keeps);
  /// Whether a device has anything to give: copies of what others give do not.
  static bool gives(const ModelPart& part, Plane plane);

  /// Elements of the whole model's parameter `index`, row-major. The plane must
  /// outlive them.
  std::span<const float> of(std::size_t index) const {
    return tensors_[index];
  }

private:
  std::vector<float> part_; ///< of this part, where z cut it
  std::vector<std::vector<float>> owned_;
  std::vector<std::span<const float>> tensors_;
};

} // namespace troupe::models
