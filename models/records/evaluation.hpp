// The last stage of an evaluation: takes rows that were generated, scored or
// read by the model, returns the metrics ("val-core/...") and one JSON line per
// sample. Pure; sample i belongs to row i / samples_per_row of the data.
#pragma once

#include "config/base/ids.hpp"
#include "config/settings/settings_types.hpp"
#include "models/data/dataset.hpp"
#include "models/rl/metric_sums.hpp"
#include "net/base/rows.hpp"

#include <string>
#include <string_view>

namespace troupe {
struct Settings;
}

namespace troupe::models {

struct EvaluationSource {
  const Dataset& data;
  const Tokenizer& tokenizer;
  StepId step; ///< committed steps of training
  std::uint32_t samples_per_row = 1;
  /// Least reward of a correct response.
  double pass_at = EvalSettings{}.pass_at;
  PreferenceSettings preference = {}; ///< of dpo, kto and reward
};

struct Evaluation {
  MetricSums sums;
  std::string lines;
};

/// Returns the options of `eval.data` with the workflow's limits.
DatasetOptions evaluation_options(const Settings& settings);

/// Evaluates responses by data source (the row's, else the file's name), with N
/// samples per row: reward/mean@N and best@N, pass@1. Reads eval_scores,
/// eval_sequence_ids, eval_loss_mask, eval_truncated.
Evaluation evaluate_responses(const EvaluationSource& source,
                              const net::Rows& rows);
/// Evaluates loss: nats per token of the completion. Reads loss_mask,
/// eval_logprobs.
Evaluation evaluate_sequences(const EvaluationSource& source,
                              const net::Rows& rows);
/// Evaluates loss, accuracy and reward_margin of `algorithm.pair_loss`. Reads
/// chosen_ and rejected_ loss_mask, eval_ chosen_ and rejected_ logprobs and,
/// if the loss does, ref_logprobs.
Evaluation evaluate_preferences(const EvaluationSource& source,
                                const net::Rows& rows);
/// Evaluates loss, accuracy, rewards by label and the point of KTO, which is
/// that of all rows. Reads loss_mask, desirable, eval_logprobs,
/// eval_ref_logprobs, and eval_kl_ loss_mask, logprobs and ref_logprobs.
Evaluation evaluate_labels(const EvaluationSource& source,
                           const net::Rows& rows);
/// Evaluates loss and accuracy of the pairwise loss. Reads eval_chosen_scores,
/// eval_rejected_scores and, where rows have it, pair_margin.
Evaluation evaluate_pairs(const EvaluationSource& source,
                          const net::Rows& rows);

using Evaluator = Evaluation (*)(const EvaluationSource&, const net::Rows&);
/// Returns the function with this name ("eval_answers"); nullptr: none.
Evaluator find_evaluator(std::string_view fn);

} // namespace troupe::models
