// Which weights made which token of a response: with slices, later tokens are
// by newer weights. Pure functions of plan, step and position.
#pragma once

#include "plans/schedule/step_graph.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::plans {

/// Tokens of a response from `first_token` on (0: its first) are by `version`,
/// up to the next span.
struct VersionSpan {
  std::int64_t first_token = 0;
  Version version = {};

  bool operator==(const VersionSpan&) const = default;
};

/// Returns the spans of a response of `call` in `step`, ascending in both; one
/// span where all its tokens are by the same weights.
std::vector<VersionSpan> version_spans(const ExecutionPlan& plan,
                                       const std::string& call, StepId step,
                                       std::int64_t max_new_tokens);

/// Returns a line for people per call in slices: "actor_gen in 2 slices of at
/// most 16 tokens, which step n generates with versions n-1, n (0 at least)".
/// `max_new_tokens` 0: not known.
std::string slices_text(const ExecutionPlan& plan, std::int64_t max_new_tokens);

/// Returns how many of a response's first `tokens` tokens are by older weights
/// than the newest of the step.
std::int64_t older_tokens(const std::vector<VersionSpan>& spans,
                          std::int64_t tokens);

/// Returns the sum of the lags of a response's first `tokens` tokens in `step`.
std::int64_t lag_of_tokens(const std::vector<VersionSpan>& spans, StepId step,
                           std::int64_t tokens);

} // namespace troupe::plans
