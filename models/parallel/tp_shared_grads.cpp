#include "models/parallel/tp_shared_grads.hpp"

#include "models/kernels/backend.hpp"
#include "models/parallel/ordered_collectives.hpp"

#include <algorithm>

namespace troupe::models {

TpSharedGrads::TpSharedGrads(Backend& backend)
  : backend_(&backend),
    buffer_(backend.memory()) {}

void TpSharedGrads::add(const LocalModel& part, const PartBox& box,
                        std::int64_t offset) {
  if (!box.over_tensor)
    return;
  const ParameterShape& whole = part.parameters[box.box.parameter];
  boxes_.push_back(
    {offset, box.box.num_elements(), buffer_size_ + box.box.row0 * whole.cols});
  buffer_size_ += whole.num_elements();
}

void TpSharedGrads::sum(float* gradients, net::Collectives& tp) {
  if (buffer_size_ == 0)
    return;
  float* buffer = buffer_.reserve(buffer_size_);
  backend_->fill(buffer, buffer_size_, 0.0F);
  for (const Shared& box : boxes_)
    backend_->copy(gradients + box.offset, buffer + box.place, box.count);
  sum_in_order(tp, *backend_, buffer, buffer_size_, "shared gradients");
  for (const Shared& box : boxes_)
    backend_->copy(buffer + box.place, gradients + box.offset, box.count);
}

} // namespace troupe::models
