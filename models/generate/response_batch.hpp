// The samples of one step in a generation: prompts, or responses that an
// earlier slice began and this one continues (plans/workflow/call_slices.hpp).
// Batches of several steps may run as one; which of them a sample is with
// changes none of its tokens (I2).
#pragma once

#include "config/base/ids.hpp"
#include "net/base/rows.hpp"

#include <cstdint>

namespace troupe::models {

struct ResponseBatch {
  /// prompt_ids i32[P]; where responses go on, also what the slice before wrote
  /// of them (Generator::run). Those that are not truncated have ended.
  const net::Rows* rows = nullptr;
  StepId step = {};                ///< names the noise
  std::int64_t max_new_tokens = 0; ///< of each response, all slices together
};

} // namespace troupe::models
