// Pipeline schedules as data: what each stage does, in order, with the
// micro-batches of one optimizer step or pass. One runner (Engine::train,
// infer) executes any of them; messages between neighbours are in the same
// order on both sides by construction.
#pragma once

#include <cstdint>
#include <vector>

namespace troupe::models {

/// One step of a stage on one micro-batch.
struct PipelineTurn {
  bool backward = false;
  std::uint32_t micro_batch = 0;
  bool operator==(const PipelineTurn&) const = default;
};

/// Returns the 1F1B schedule (PipeDream-Flush): stage s first runs the forward
/// of stages - 1 - s micro-batches ahead, then alternates, so that it keeps the
/// activations of at most `pipeline_depth` micro-batches. With one stage:
/// forward and backward alternate.
std::vector<PipelineTurn> one_forward_one_backward(std::uint32_t stage,
                                                   std::uint32_t stages,
                                                   std::uint32_t micro_batches);

/// Returns the most micro-batches whose activations a stage keeps at a time.
std::uint32_t pipeline_depth(std::uint32_t stage, std::uint32_t stages);

/// Returns how many micro-batches keep all stages busy most of the time, for
/// users who set neither a number nor a token budget; 0: one is enough.
int default_micro_batches(std::uint32_t stages);

} // namespace troupe::models
