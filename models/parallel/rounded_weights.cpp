#include "models/parallel/rounded_weights.hpp"

#include "config/base/error.hpp"
#include "models/kernels/row_kernels.hpp"

namespace troupe::models {

RoundedWeights::RoundedWeights(std::int64_t count, DType products,
                               const net::BlockMemory* memory)
  : count_(products == DType::bf16 ? count : 0),
    memory_(memory) {
  return_to_device();
}

std::uint64_t RoundedWeights::num_bytes() const {
  return block_.data()
           ? static_cast<std::uint64_t>(count_) * size_bytes(DType::bf16)
           : 0;
}

void RoundedWeights::refresh(const float* masters, RowKernels& backend) {
  if (is_current())
    return;
  TROUPE_CHECK(data(), "the weights are not on their device");
  backend.copy(masters, data(), count_);
  is_current_ = true;
}

void RoundedWeights::leave_device() {
  block_ = TypedBlock(memory_, DType::bf16);
  make_stale();
}

void RoundedWeights::return_to_device() {
  make_stale();
  if (!exist() || data())
    return;
  block_ = TypedBlock(memory_, DType::bf16);
  block_.reserve(count_);
}

} // namespace troupe::models
