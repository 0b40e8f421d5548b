#include "models/rl/group_advantages.hpp"

#include "config/settings/settings.hpp"
#include "models/rl/cov_tokens.hpp"
#include "models/rl/rollout_batch.hpp"

#include <algorithm>
#include <map>

namespace troupe::models {
namespace {

/// Returns the indices of the scored samples of each prompt.
std::vector<std::vector<std::size_t>>
groups_of(const RolloutBatch& batch, const net::Rows& rows, int group_size) {
  std::map<std::uint64_t, std::vector<std::size_t>> by_prompt;
  for (std::size_t i = 0; i < batch.num_samples(); ++i)
    if (batch.scored(i))
      by_prompt[rows.samples[i].value / static_cast<std::uint64_t>(group_size)]
        .push_back(i);
  std::vector<std::vector<std::size_t>> groups;
  for (auto& [prompt, members] : by_prompt)
    groups.push_back(std::move(members));
  return groups;
}

std::vector<double> compared(const std::vector<double>& scores,
                             const AlgorithmSettings& algorithm) {
  if (algorithm.advantage == "rloo")
    return leave_one_out(scores);
  const GroupSettings& group = algorithm.group;
  if (group.baseline == "others")
    return algorithm.whiten ? others_normalised(
             scores, group.deviation_eps, parse_deviation(group.deviation))
                            : leave_one_out(scores);
  return algorithm.whiten ? group_normalised(scores, group.deviation_eps,
                                             parse_deviation(group.deviation))
                          : group_centred(scores);
}

/// Sets the sample's advantage at each of its own tokens.
void spread_advantage(const RolloutBatch& batch, std::size_t i,
                      double advantage, std::vector<float>& advantages_T) {
  const auto own = batch.part(std::span(advantages_T), i);
  const auto mask = batch.mask(i);
  for (std::size_t t = 0; t < own.size(); ++t)
    own[t] = mask[t] != 0 ? static_cast<float>(advantage) : 0.0F;
}

std::vector<float> by_groups(const RolloutBatch& batch, const net::Rows& rows,
                             const Settings& settings, MetricSums& sums) {
  std::vector<float> advantages_T(batch.num_tokens());
  for (const auto& group : groups_of(batch, rows, settings.rollout.n)) {
    std::vector<double> scores;
    for (const auto i : group)
      scores.push_back(shaped_score(batch, i, settings));
    const auto compared_scores = compared(scores, settings.algorithm);
    for (std::size_t k = 0; k < group.size(); ++k)
      spread_advantage(batch, group[k], compared_scores[k], advantages_T);
    const auto [least, most] = std::ranges::minmax(scores);
    sums.add("frac_reward_zero_std", least == most ? 1 : 0, 1);
  }
  if (settings.algorithm.group.whiten_batch)
    whiten(advantages_T, batch.mask(), /*shift_mean=*/true,
           parse_deviation(settings.algorithm.group.deviation));
  return advantages_T;
}

/// Returns the greedy responses as a separate batch: their scores are shaped in
/// the same way.
RolloutBatch greedy_batch(const net::Rows& rows) {
  net::Rows greedy;
  greedy.samples = rows.samples;
  for (const char* key : {"scores", "loss_mask", "truncated"}) {
    net::Column column = rows.at(std::string("greedy_") + key);
    column.key = key;
    greedy.add(std::move(column));
  }
  return RolloutBatch(greedy);
}

/// Returns advantages over the greedy responses; a sample whose greedy
/// counterpart has no score is excluded from training.
std::vector<float> over_greedy(const RolloutBatch& batch, const net::Rows& rows,
                               const Settings& settings,
                               std::span<const float> rewards_T,
                               MetricSums& sums) {
  const RolloutBatch greedy = greedy_batch(rows);
  std::vector<float> advantages_T(batch.num_tokens());
  for (std::size_t i = 0; i < batch.num_samples(); ++i) {
    if (!greedy.scored(i) || !batch.scored(i))
      continue;
    const double baseline = shaped_score(greedy, i, settings);
    sums.add("critic/greedy_score/mean", baseline, 1);
    returns_over(batch.part(rewards_T, i), batch.mask(i), baseline,
                 batch.part(std::span(advantages_T), i));
  }
  return advantages_T;
}

std::vector<float> by_returns(const RolloutBatch& batch,
                              std::span<const float> rewards_T,
                              const AlgorithmSettings& algorithm) {
  std::vector<float> advantages_T(batch.num_tokens());
  for (std::size_t i = 0; i < batch.num_samples(); ++i)
    discounted_sums(batch.part(rewards_T, i), batch.mask(i),
                    algorithm.discount.gamma,
                    batch.part(std::span(advantages_T), i));
  whiten(advantages_T, batch.mask(), /*shift_mean=*/true,
         parse_deviation(algorithm.group.deviation));
  return advantages_T;
}

} // namespace

FunctionResult group_advantages(const net::Rows& rows,
                                const FunctionContext& context) {
  const Settings& settings = context.settings;
  const AlgorithmSettings& algorithm = settings.algorithm;
  const bool with_reference = algorithm.kl_in == "reward";
  const RolloutBatch batch(rows);
  FunctionResult result;
  result.carried = context.carried;
  std::vector<float> kl_T(batch.num_tokens());
  if (with_reference)
    kl_T = token_kl(batch, batch.tokens_of(rows, "logprobs"),
                    batch.tokens_of(rows, "ref_logprobs"),
                    parse_kl_estimator(algorithm.kl_estimator));
  const double kl_coef = with_reference ? algorithm.kl_coef : 0.0;
  std::vector<float> rewards_T(batch.num_tokens());
  for (std::size_t i = 0; i < batch.num_samples(); ++i)
    token_rewards(batch.part(std::span<const float>(kl_T), i), batch.mask(i),
                  kl_coef, shaped_score(batch, i, settings),
                  batch.part(std::span(rewards_T), i));
  std::vector<float> advantages_T;
  if (algorithm.advantage == "reinforce_pp")
    advantages_T = by_returns(batch, rewards_T, algorithm);
  else if (algorithm.advantage == "remax")
    advantages_T = over_greedy(batch, rows, settings, rewards_T, result.sums);
  else
    advantages_T = by_groups(batch, rows, settings, result.sums);

  add_response_metrics(result.sums, batch, rewards_T);
  Moments advantages;
  advantages.add(advantages_T, batch.mask());
  add_moments(result.sums, "critic/advantages", advantages);
  if (with_reference && batch.num_scored() > 0) {
    result.sums.add("actor/reward_kl_penalty", sum_of(kl_T),
                    static_cast<double>(batch.num_scored()));
    result.sums.add("actor/kl_coef", kl_coef, 1.0);
  }
  result.rows.samples = rows.samples;
  add_token_column(result.rows, batch, "advantages", advantages_T);
  if (chooses_cov_tokens(settings))
    add_cov_tokens(result.rows, batch, advantages_T,
                   batch.tokens_of(rows, "logprobs"), context);
  add_train_mask(result.rows, batch,
                 settings.reward.long_response.mask_truncated);
  return result;
}

FunctionEntry group_advantages_entry() {
  const auto kl
    = [](const Settings& s) { return s.algorithm.kl_in == "reward"; };
  const auto reads_logprobs = [](const Settings& s) {
    return s.algorithm.kl_in == "reward" || chooses_cov_tokens(s);
  };
  const auto greedy
    = [](const Settings& s) { return s.algorithm.advantage == "remax"; };
  return {.name = "group_advantages",
          .function = &group_advantages,
          .reads = {{"loss_mask"},
                    {"scores"},
                    {"truncated"},
                    {"logprobs", reads_logprobs},
                    {"ref_logprobs", kl},
                    {"greedy_loss_mask", greedy},
                    {"greedy_scores", greedy},
                    {"greedy_truncated", greedy}}};
}

} // namespace troupe::models
