// Sampling parameters of responses: those of `rollout:` and of the command
// `generate`, as one value that is sent to every generating device.
#pragma once

#include "config/settings/settings_types.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace troupe::models {

class StopTexts;

/// Distribution of the log-probabilities that a response has.
enum class ResponseLogprobs : std::uint8_t {
  unfiltered, ///< of the model at the temperature
  sampled,    ///< of what was sampled from: after penalty and filters
  masked,     ///< the same, with the ids that the filters kept: at most top_k
};

/// Numbers that are recorded of each token of a response.
struct ResponseRecord {
  ResponseLogprobs logprobs = ResponseLogprobs::unfiltered;
  bool experts = false; ///< that the token went to
};

struct GenerateOptions {
  std::int64_t max_new_tokens = RolloutSettings{}.max_new_tokens;
  /// Stop ids are not allowed before this many tokens exist.
  std::int64_t min_new_tokens = 0;
  /// Divisor of logits; 0 means greedy (log-probabilities are then at 1).
  double temperature = 1.0;
  /// 0: off; ties with the k-th are kept, but for masks, which have no more
  /// than k ids: those of the lowest ids then.
  std::int64_t top_k = 0;
  double top_p = 1.0; ///< 1: off
  double min_p = 0.0; ///< 0: off; share of the largest probability
  /// 1: off; applied once per distinct earlier token of prompt and response.
  double repetition_penalty = 1.0;
  bool greedy = false;
  std::uint64_t seed = 1;
  /// Tokens of one pass through the model (prompts are prefilled in pieces).
  std::int64_t max_batch_tokens = RolloutSettings{}.max_batch_tokens;
  /// Responses in flight; memory may allow fewer.
  std::int64_t max_sequences = 64;
  /// Limit of the KV cache; prompts wait until there is room. 0: the
  /// generator's own limit.
  std::uint64_t kv_cache_bytes = 0;
  std::vector<std::int32_t> stop_ids; ///< end tokens; included in the response
  bool ignore_eos = false;            ///< continue to max_new_tokens
  std::shared_ptr<const StopTexts> stop_texts; ///< null: none
  ResponseRecord record;
};

} // namespace troupe::models
