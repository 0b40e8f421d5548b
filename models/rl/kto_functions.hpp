// The point that KTO compares responses with: the KL divergence of policy and
// reference (arXiv 2402.01306, section 4.2), estimated from mismatched pairs,
// each prompt with the completion of the row before it in the step. Both
// functions see the whole batch, so how it is cut changes nothing (I1).
#pragma once

#include "models/rl/functions.hpp"

#include <string>

namespace troupe::models {

/// Returns kl_sequence_ids and kl_loss_mask: the tokens of each sample before
/// the first one with mask 1, then those of the sample before it (the last one
/// for the first) from there on, at most data.max_tokens together. Source:
/// TRL's KTOTrainer, which rotates the completions of a batch likewise.
FunctionResult kto_mismatch(const net::Rows& rows,
                            const FunctionContext& context);
FunctionEntry kto_mismatch_entry();

/// Returns the point of all rows: the mean over samples of the sums of
/// kl_logprobs - kl_ref_logprobs over kl_loss_mask, at least 0; `prefix` begins
/// the names of these keys. The order of the rows changes nothing.
double kto_point(const net::Rows& rows, const std::string& prefix = {});

/// Returns kl_point [1], the same number for every sample. Metric: train/kl.
FunctionResult kto_kl(const net::Rows& rows, const FunctionContext& context);
FunctionEntry kto_kl_entry();

} // namespace troupe::models
