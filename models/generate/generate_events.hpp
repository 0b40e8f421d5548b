// Callbacks of a generation in progress: each response as it finishes, and each
// batch of responses once all of them have. Called on the generating thread.
#pragma once

#include "config/base/ids.hpp"
#include "net/base/rows.hpp"

#include <cstdint>
#include <functional>
#include <span>

namespace troupe::models {

/// A finished sample; valid only during the call.
struct GeneratedSample {
  SampleId sample;
  std::size_t batch = 0;                      ///< index of its batch
  std::span<const std::int32_t> sequence_ids; ///< [L] prompt and response
  std::span<const float> logprobs;            ///< [L], 0 at prompt tokens
  std::int64_t num_prompt_tokens = 0;
  bool truncated = false; ///< cut by a length limit, no end token
};

struct GenerateEvents {
  std::function<void(const GeneratedSample&)> on_sample = {};
  /// Receives the rows of batch i, as Generator::run returns them.
  std::function<void(std::size_t batch, net::Rows rows)> on_batch = {};
};

} // namespace troupe::models
