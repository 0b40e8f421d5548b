// Pipeline schedules as data: what each stage does, in order, with the
// micro-batches of one optimizer step or pass. One runner (Engine::train,
// infer) carries any of them out; messages between neighbours are in the same
// order on both sides by construction.
#pragma once

#include <cstdint>
#include <vector>

namespace troupe::models {

/// One stage's turn on one micro-batch.
struct PipelineTurn {
  bool backward = false;
  std::uint32_t micro_batch = 0;
  bool operator==(const PipelineTurn&) const = default;
};

/// One forward, one backward (PipeDream-Flush): stage s first runs the forward
/// of stages - 1 - s micro-batches ahead, then alternates, so that it keeps the
/// activations of at most `pipeline_depth` micro-batches. With one stage:
/// forward and backward in turn.
std::vector<PipelineTurn> one_forward_one_backward(std::uint32_t stage,
                                                   std::uint32_t stages,
                                                   std::uint32_t micro_batches);

/// Micro-batches whose activations a stage keeps at a time, at most.
std::uint32_t pipeline_depth(std::uint32_t stage, std::uint32_t stages);

/// Micro-batches that keep all stages busy most of the time, where the user
/// gave neither a number nor a token budget; 0: no need for more than one.
int default_micro_batches(std::uint32_t stages);

} // namespace troupe::models
