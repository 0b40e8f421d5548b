// The drawing of tokens by a device, from logits in its memory: invariant I2
// for the options that a kernel can follow (models/generate/device_draw.hpp),
// so that an id and a log-probability per row come to the host, not its logits.
//
// R rows, V vocabulary.
#pragma once

#include <cstdint>

namespace troupe::models {

/// Name of a row's noise: the key and the first words of Philox' counter.
struct DrawKey {
  std::uint32_t key[2];
  std::uint32_t sample;
  std::uint32_t position;
};

/// The tokens that are drawn among, and the kind of their log-probabilities.
struct DrawFilters {
  double temperature = 1; ///< positive
  bool greedy = false;
  std::int64_t top_k = 0;         ///< 0: off; ties with the k-th are kept
  double top_p = 1;               ///< 1: off; equal logits by id
  double min_p = 0;               ///< 0: off
  bool filtered_logprobs = false; ///< among the kept tokens

  bool operator==(const DrawFilters&) const = default;
};

struct DrawRows {
  static constexpr std::int64_t most_vocab = 1 << 22;

  std::int64_t rows = 0;  ///< R
  std::int64_t vocab = 0; ///< V, at most `most_vocab`
  DrawFilters filters;
};

/// The result of a row. A device's log-probability is within 1e-5 of the host's
/// sampler.
struct DrawnToken {
  std::int32_t id = 0; ///< -1 from a device: no logit is finite, or one is NaN
  float logprob = 0;   ///< under log softmax(logits / temperature), unfiltered
                       ///< unless options say otherwise
};

} // namespace troupe::models
