// What a generation tells while it goes on: each answer as it finishes, and
// each batch of answers once all of them have. Called on the thread that
// generates.
#pragma once

#include "config/ids.hpp"
#include "net/rows.hpp"

#include <cstdint>
#include <functional>
#include <span>

namespace troupe::models {

/// A finished sample; valid during the call only.
struct GeneratedSample {
  SampleId sample;
  std::span<const std::int32_t> sequence_ids; ///< [L] prompt and answer
  std::span<const float> logprobs;            ///< [L], 0 at prompt tokens
  std::int64_t num_prompt_tokens = 0;
  bool truncated = false; ///< cut by a length limit, no end token
};

struct GenerateEvents {
  std::function<void(const GeneratedSample&)> on_sample = {};
  /// The rows of batch i, as Generator::run returns them.
  std::function<void(std::size_t batch, net::Rows rows)> on_batch = {};
};

} // namespace troupe::models
