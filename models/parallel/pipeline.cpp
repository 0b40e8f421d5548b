#include "models/parallel/pipeline.hpp"

#include <algorithm>

namespace troupe::models {

std::uint32_t pipeline_depth(std::uint32_t stage, std::uint32_t stages) {
  return stages - stage;
}

std::vector<PipelineTurn>
one_forward_one_backward(std::uint32_t stage, std::uint32_t stages,
                         std::uint32_t micro_batches) {
  const std::uint32_t ahead
    = std::min(micro_batches, pipeline_depth(stage, stages) - 1);
  std::vector<PipelineTurn> turns;
  for (std::uint32_t i = 0; i < ahead; ++i)
    turns.push_back({false, i});
  for (std::uint32_t i = 0; i < micro_batches; ++i) {
    if (i + ahead < micro_batches)
      turns.push_back({false, i + ahead});
    turns.push_back({true, i});
  }
  return turns;
}

int default_micro_batches(std::uint32_t stages) {
  return stages == 1 ? 0 : static_cast<int>(2 * stages);
}

} // namespace troupe::models
