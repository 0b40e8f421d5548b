#include "models/parallel/tp_shared_grads.hpp"

#include "net/collectives/collectives.hpp"

#include <algorithm>

namespace troupe::models {

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
  std::fill_n(buffer, buffer_size_, 0.0F);
  for (const Shared& box : boxes_)
    std::copy_n(gradients + box.offset, box.count, buffer + box.place);
  tp.all_reduce_sum(buffer, static_cast<std::size_t>(buffer_size_), DType::f32,
                    "shared gradients");
  for (const Shared& box : boxes_)
    std::copy_n(buffer + box.place, box.count, gradients + box.offset);
}

} // namespace troupe::models
