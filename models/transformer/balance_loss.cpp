#include "models/transformer/balance_loss.hpp"

#include "config/base/error.hpp"

#include <algorithm>

namespace troupe::models {

namespace {

/// The experts of one sequence.
struct SequenceBalance {
  std::vector<std::size_t> tokens; ///< of the batch
  std::vector<double> load_E;      ///< over the mean load
  std::vector<double> score_E;     ///< mean of normalized scores

  double loss() const {
    double sum = 0;
    for (std::size_t e = 0; e < load_E.size(); ++e)
      sum += load_E[e] * score_E[e];
    return sum;
  }
};

/// Returns the sum of a token's scores, by which each of them is divided.
double score_sum(const RouterShape& shape, const float* scores_E) {
  double sum = 0;
  for (std::int64_t e = 0; e < shape.experts; ++e)
    sum += scores_E[e];
  return shape.rule.score == RouterScore::softmax ? 1.0 : sum;
}

const float* scores_of(const RouterShape& shape, const Routing& routing,
                       std::size_t token) {
  return routing.scores_TE.data()
         + token * static_cast<std::size_t>(shape.experts);
}

SequenceBalance balance_of(const RouterShape& shape, const Routing& routing,
                           std::vector<std::size_t> tokens) {
  const auto experts = static_cast<std::size_t>(shape.experts);
  const auto chosen = static_cast<std::size_t>(shape.chosen);
  SequenceBalance balance{std::move(tokens), std::vector<double>(experts, 0.0),
                          std::vector<double>(experts, 0.0)};
  const auto count = static_cast<double>(balance.tokens.size());
  const double mean_load
    = count * static_cast<double>(chosen) / static_cast<double>(experts);
  for (const std::size_t t : balance.tokens) {
    for (std::size_t i = 0; i < chosen; ++i)
      balance
        .load_E[static_cast<std::size_t>(routing.chosen_TK[t * chosen + i])]
        += 1 / mean_load;
    const float* scores_E = scores_of(shape, routing, t);
    const double sum = score_sum(shape, scores_E);
    for (std::size_t e = 0; e < experts; ++e)
      balance.score_E[e] += scores_E[e] / sum / count;
  }
  return balance;
}

/// Returns the balance of each sequence that has tokens and that no other one
/// continues; the tokens that it continues are its own, too.
std::vector<SequenceBalance> balances(const RouterShape& shape,
                                      const Routing& routing,
                                      const PackedTokens& batch) {
  TROUPE_CHECK(routing.scores_TE.size()
                 == static_cast<std::size_t>(shape.tokens * shape.experts),
               "a balance loss needs the scores of all experts");
  std::vector<SequenceBalance> found;
  const auto append
    = [&](std::size_t sequence, std::vector<std::size_t>& tokens) {
        for (auto t = batch.cu_seqlens[sequence];
             t < batch.cu_seqlens[sequence + 1]; ++t)
          tokens.push_back(static_cast<std::size_t>(t));
      };
  const auto count = static_cast<std::size_t>(batch.num_sequences());
  for (std::size_t s = 0; s < count; ++s) {
    if (std::ranges::find(batch.continues, static_cast<std::int32_t>(s))
        != batch.continues.end())
      continue;
    std::vector<std::size_t> tokens;
    if (!batch.continues.empty() && batch.continues[s] >= 0)
      append(static_cast<std::size_t>(batch.continues[s]), tokens);
    append(s, tokens);
    if (!tokens.empty())
      found.push_back(balance_of(shape, routing, std::move(tokens)));
  }
  return found;
}

} // namespace

std::vector<double> balance_losses(const RouterShape& shape,
                                   const Routing& routing,
                                   const PackedTokens& batch) {
  std::vector<double> losses;
  for (const SequenceBalance& balance : balances(shape, routing, batch))
    losses.push_back(balance.loss());
  return losses;
}

// With scores s, p = s / N (N: their sum; 1 for a softmax) and d p_e = weight
// f_e / tokens:
//   softmax: d logit_e = p_e (d p_e - sum over all of p d p)
//   sigmoid: d logit_e = s_e (1 - s_e) (d p_e - sum over all of p d p) / N.
void balance_backward(const RouterShape& shape, const Routing& routing,
                      const PackedTokens& batch, float* d_logits_TE) {
  const auto experts = static_cast<std::size_t>(shape.experts);
  const bool is_sigmoid = shape.rule.score == RouterScore::sigmoid;
  for (const SequenceBalance& balance : balances(shape, routing, batch)) {
    const double weight
      = batch.balance_weight / static_cast<double>(balance.tokens.size());
    for (const std::size_t t : balance.tokens) {
      const float* scores_E = scores_of(shape, routing, t);
      const double sum = score_sum(shape, scores_E);
      double mean = 0; // sum over all of p f
      for (std::size_t e = 0; e < experts; ++e)
        mean += scores_E[e] / sum * balance.load_E[e];
      for (std::size_t e = 0; e < experts; ++e) {
        const double score = scores_E[e];
        const double slope = is_sigmoid ? score * (1 - score) / sum : score;
        d_logits_TE[t * experts + e]
          += static_cast<float>(weight * slope * (balance.load_E[e] - mean));
      }
    }
  }
}

} // namespace troupe::models
