// The last step of an evaluation: rows that were answered, scored or read by
// the model in, the metrics of INTERFACE ("val-core/..") and one JSON line a
// sample out. Pure; sample i belongs to row i / samples_per_row of the data.
#pragma once

#include "config/ids.hpp"
#include "models/dataset.hpp"
#include "models/sums.hpp"
#include "net/rows.hpp"

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
  double pass_at = 0.5; ///< reward from which an answer is right
  double beta = 0.1;    ///< DPO's
};

struct Evaluation {
  Sums sums;
  std::string lines;
};

/// Options of `eval.data` under the workflow's limits.
DatasetOptions evaluation_options(const Settings& settings);

/// By data source (the row's, else the file's name), with N samples a row:
/// reward/mean@N and best@N, pass@1. Reads eval_scores, eval_sequence_ids,
/// eval_loss_mask, eval_truncated.
Evaluation evaluate_answers(const EvaluationSource& source,
                            const net::Rows& rows);
/// loss: nats a token of the completion. Reads loss_mask, eval_logprobs.
Evaluation evaluate_sequences(const EvaluationSource& source,
                              const net::Rows& rows);
/// loss, accuracy and reward_margin of DPO. Reads chosen_ and rejected_
/// loss_mask, eval_ chosen_ and rejected_ logprobs and ref_logprobs.
Evaluation evaluate_preferences(const EvaluationSource& source,
                                const net::Rows& rows);
/// loss and accuracy of the pairwise loss. Reads eval_chosen_scores,
/// eval_rejected_scores.
Evaluation evaluate_pairs(const EvaluationSource& source,
                          const net::Rows& rows);

using Evaluator = Evaluation (*)(const EvaluationSource&, const net::Rows&);
/// By the function's name, "eval_answers"; nullptr: none has it.
Evaluator find_evaluator(std::string_view fn);

} // namespace troupe::models
