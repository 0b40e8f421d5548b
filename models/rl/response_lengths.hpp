// Lengths of responses and prompts as metrics, and how many responses reached
// the limit: by the functions that make advantages, and as a function of its
// own
// (`response_lengths`) in workflows without rewards.
#pragma once

#include "models/rl/functions.hpp"
#include "models/rl/metric_sums.hpp"
#include "models/rl/rl_math.hpp"

namespace troupe::models {

class ResponseLengths {
public:
  void add(Mask mask, bool truncated);
  /// Adds response_length/{mean, max, min, clip_ratio} and
  /// prompt_length/{mean, max, min}; nothing if there were no responses.
  void report(MetricSums& sums) const;

private:
  Moments responses_;
  Moments prompts_;
  double truncated_ = 0;
};

/// Adds NAME/{mean, max, min}; nothing if empty.
void add_moments(MetricSums& sums, const std::string& name,
                 const Moments& moments);

/// Reads loss_mask and truncated; writes no key.
FunctionResult response_lengths(const net::Rows& rows,
                                const FunctionContext& context);
FunctionEntry response_lengths_entry();

} // namespace troupe::models
