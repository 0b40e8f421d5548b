#include "models/parallel/unrounded_gather.hpp"

#include "config/model/product_operands.hpp"
#include "models/kernels/backend.hpp"

#include <algorithm>

namespace troupe::models {

UnroundedGather::UnroundedGather(const LocalModel& part,
                                 const plans::GatherBuffer& unit,
                                 std::span<const std::int64_t> offsets) {
  std::vector<std::int64_t> counts;
  std::int64_t begin = 0; // of the box, in the unit
  for (std::size_t box = unit.first_box; box < unit.end_box; ++box) {
    const std::int64_t end = begin + part.boxes[box].box.num_elements();
    const bool is_rounded = read_by_products(part.local_parameters[box]);
    for (std::int64_t at = begin; at < end && !is_rounded;) {
      const std::int64_t rank = at / unit.run;
      const std::int64_t next = std::min(end, (rank + 1) * unit.run);
      const auto wanted = static_cast<std::size_t>(rank) + 1;
      runs_.resize(std::max(runs_.size(), wanted));
      counts.resize(runs_.size());
      runs_.back().push_back({offsets[box] + at - begin, next - at});
      counts.back() += next - at;
      at = next;
    }
    begin = end;
  }
  if (counts.empty())
    return;
  count_ = *std::ranges::max_element(counts);
  runs_.resize(plans::unit_holders(part.strategy, unit.is_dealt));
}

void UnroundedGather::pack(const float* memory, std::uint32_t rank,
                           float* buffer, Backend& backend) const {
  if (count_ == 0)
    return;
  float* to = buffer + count_ * rank;
  for (const Run& run : runs_[rank]) {
    backend.copy(memory + run.offset, to, run.count);
    to += run.count;
  }
}

void UnroundedGather::unpack(const float* buffer, float* memory,
                             Backend& backend) const {
  for (std::size_t rank = 0; rank < runs_.size(); ++rank) {
    const float* from = buffer + count_ * static_cast<std::int64_t>(rank);
    for (const Run& run : runs_[rank]) {
      backend.copy(from, memory + run.offset, run.count);
      from += run.count;
    }
  }
}

} // namespace troupe::models
