#include "models/rl/rollout_batch.hpp"

#include "config/base/error.hpp"
#include "config/settings/settings.hpp"

#include <algorithm>

namespace troupe::models {

namespace {

std::vector<std::uint32_t> lengths_of(const RolloutBatch& batch) {
  std::vector<std::uint32_t> lengths;
  for (std::size_t i = 0; i < batch.num_samples(); ++i)
    lengths.push_back(static_cast<std::uint32_t>(batch.mask(i).size()));
  return lengths;
}

} // namespace

RolloutBatch::RolloutBatch(const net::Rows& rows)
  : offsets_(rows.at("loss_mask").offsets()),
    scores_N_(rows.at("scores").as<float>()),
    truncated_N_(rows.at("truncated").as<std::uint8_t>()) {
  const auto own = rows.at("loss_mask").as<std::uint8_t>();
  mask_T_.assign(own.begin(), own.end());
  TROUPE_CHECK(scores_N_.size() == num_samples()
                 && truncated_N_.size() == num_samples(),
               "scores and truncated hold one entry a sample");
  for (std::size_t i = 0; i < num_samples(); ++i)
    if (!scored(i))
      std::ranges::fill(part(std::span(mask_T_), i), std::uint8_t{0});
}

std::size_t RolloutBatch::num_scored() const {
  return static_cast<std::size_t>(
    std::ranges::count_if(scores_N_, [](float s) { return !std::isnan(s); }));
}

std::span<const float> RolloutBatch::tokens_of(const net::Rows& rows,
                                               const char* key) const {
  const auto numbers = rows.at(key).as<float>();
  TROUPE_CHECK(numbers.size() == num_tokens(),
               std::string(key) + " fits loss_mask");
  return numbers;
}

namespace {

std::ptrdiff_t own_tokens(Mask mask) {
  return std::ranges::count_if(mask, [](std::uint8_t own) { return own != 0; });
}

} // namespace

double overlong_share(std::ptrdiff_t length, std::ptrdiff_t most,
                      std::ptrdiff_t buffer) {
  const auto beyond
    = std::clamp<std::ptrdiff_t>(length - (most - buffer), 0, buffer);
  return static_cast<double>(beyond) / static_cast<double>(buffer);
}

double shaped_score(const RolloutBatch& batch, std::size_t i,
                    const Settings& settings) {
  const RewardSettings& reward = settings.reward;
  if (batch.truncated(i) && replaces_missing_eos(settings))
    return reward.long_response.missing_eos;
  const double score = reward.scale * batch.score(i) + reward.bias;
  const double bounded
    = reward.clip > 0 ? std::clamp(score, -reward.clip, reward.clip) : score;
  const auto& limits = reward.long_response;
  if (limits.overlong_tokens == 0)
    return bounded;
  return bounded
         - overlong_share(own_tokens(batch.mask(i)),
                          settings.rollout.max_new_tokens,
                          limits.overlong_tokens)
             * limits.overlong_penalty;
}

std::vector<float> token_kl(const RolloutBatch& batch,
                            std::span<const float> logprobs_T,
                            std::span<const float> reference_T,
                            KlEstimator kind) {
  std::vector<float> kl_T(batch.num_tokens());
  if (reference_T.empty())
    return kl_T;
  for (std::size_t t = 0; t < kl_T.size(); ++t)
    if (batch.mask()[t] != 0)
      kl_T[t]
        = static_cast<float>(kl_estimate(kind, logprobs_T[t], reference_T[t]));
  return kl_T;
}

double sum_of(std::span<const float> numbers) {
  double total = 0;
  for (const float number : numbers)
    total += number;
  return total;
}

void add_response_metrics(MetricSums& sums, const RolloutBatch& batch,
                          std::span<const float> rewards_T) {
  Moments scores;
  Moments rewards;
  ResponseLengths lengths;
  for (std::size_t i = 0; i < batch.num_samples(); ++i) {
    if (!batch.scored(i))
      continue;
    scores.add(batch.score(i));
    rewards.add(sum_of(batch.part(rewards_T, i)));
    lengths.add(batch.mask(i), batch.truncated(i));
  }
  add_moments(sums, "critic/score", scores);
  add_moments(sums, "critic/rewards", rewards);
  lengths.report(sums);
}

void add_token_column(net::Rows& rows, const RolloutBatch& batch,
                      const char* key, const std::vector<float>& numbers_T) {
  rows.add(
    net::make_column(key, DType::f32, lengths_of(batch), numbers_T.data()));
}

void add_train_mask(net::Rows& rows, const RolloutBatch& batch,
                    bool mask_truncated) {
  auto mask_T = batch.mask();
  for (std::size_t i = 0; mask_truncated && i < batch.num_samples(); ++i)
    if (batch.truncated(i))
      std::ranges::fill(batch.part(std::span(mask_T), i), std::uint8_t{0});
  rows.add(net::make_column("train_mask", DType::u8, lengths_of(batch),
                            mask_T.data()));
}

} // namespace troupe::models
