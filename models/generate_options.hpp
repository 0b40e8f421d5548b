// How answers are drawn: the sampling words of `rollout:` and of the verb
// `generate`, as one value that travels to every generating device.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace troupe::models {

class StopTexts;

struct GenerateOptions {
  std::int64_t max_new_tokens = 48;
  /// Stop ids are out of the allowed set until so many tokens exist.
  std::int64_t min_new_tokens = 0;
  /// Logits are divided by it; 0 means greedy (log-probabilities then at 1).
  double temperature = 1.0;
  std::int64_t top_k = 0; ///< 0: off; ties with the k-th are kept
  double top_p = 1.0;     ///< 1: off
  double min_p = 0.0;     ///< 0: off; share of the largest probability
  /// 1: off; once per distinct earlier token of prompt and answer.
  double repetition_penalty = 1.0;
  bool greedy = false;
  std::uint64_t seed = 1;
  /// Tokens of one pass through the model (prompts are fed in pieces).
  std::int64_t max_batch_tokens = 2048;
  /// Answers under way at once; memory may allow fewer.
  std::int64_t max_sequences = 64;
  /// Most memory of the KV cache; prompts wait until a slot is free. 0: the
  /// generator's own limit.
  std::uint64_t kv_cache_bytes = 0;
  std::vector<std::int32_t> stop_ids; ///< end tokens; the answer includes it
  bool ignore_eos = false;            ///< run to max_new_tokens whatever comes
  std::shared_ptr<const StopTexts> stop_texts; ///< null: none
  /// Report log-probabilities of the distribution that was sampled from (after
  /// penalty and filters) instead of the model's own.
  bool sampled_logprobs = false;
};

} // namespace troupe::models
