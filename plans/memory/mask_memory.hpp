// Memory of sampling masks (`algorithm.sampling_mask`): for each response token
// the ids that the sampler kept, 4 bytes each, at most `rollout.top_k` of them.
// They are rows in a host's memory, never in that of a device. Upper bounds for
// the longest sequences that the settings allow.
#pragma once

#include "plans/memory/call_memory.hpp"

#include <cstdint>

namespace troupe::plans {

/// Bytes in the memory of the host that needs most.
struct MaskBytes {
  std::uint64_t stored = 0; ///< from generation to the end of the step
  /// Beside them while calls read them: the copies of its devices, each of the
  /// rows of its dp rank and twice of one micro-batch.
  std::uint64_t read = 0;

  std::uint64_t all() const {
    return stored + read;
  }
};

/// Returns the bytes of so many samples' masks of at most `most_ids` tokens.
std::uint64_t mask_row_bytes(const BatchSizes& sizes, std::uint64_t samples,
                             std::int64_t most_ids);
/// Returns the bytes of one device's two copies for a micro-batch of so many
/// samples: of all its tokens, and of those with a log-probability.
std::uint64_t mask_batch_bytes(const BatchSizes& sizes, std::uint64_t samples,
                               std::int64_t most_ids);

/// Returns the bytes under `plan`; 0 for a workflow without masks.
MaskBytes mask_bytes(const Workflow& workflow, const ExecutionPlan& plan,
                     const BatchSizes& sizes, std::int64_t most_ids);

} // namespace troupe::plans
