#include "models/ppo_advantages.hpp"

#include "config/error.hpp"
#include "config/settings.hpp"
#include "models/rl_math.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

namespace troupe::models {
namespace {

/// The batch as spans, sample by sample.
class PpoBatch {
public:
  PpoBatch(const net::Rows& rows, bool with_reference)
    : mask_(rows.at("loss_mask").as<std::uint8_t>()),
      offsets_(rows.at("loss_mask").offsets()),
      logprobs_(rows.at("logprobs").as<float>()),
      values_(rows.at("values").as<float>()),
      scores_(rows.at("scores").as<float>()),
      truncated_(rows.at("truncated").as<std::uint8_t>()) {
    const std::size_t tokens = mask_.size();
    if (with_reference)
      reference_ = rows.at("ref_logprobs").as<float>();
    TROUPE_CHECK(logprobs_.size() == tokens, "logprobs fit loss_mask");
    TROUPE_CHECK(values_.size() == tokens + num_samples(),
                 "values hold L + 1 entries a sample");
    TROUPE_CHECK(scores_.size() == num_samples()
                   && truncated_.size() == num_samples(),
                 "scores and truncated hold one entry a sample");
    TROUPE_CHECK(!with_reference || reference_.size() == tokens,
                 "ref_logprobs fit loss_mask");
  }
  std::size_t num_samples() const {
    return offsets_.size() - 1;
  }
  std::size_t num_tokens() const {
    return mask_.size();
  }
  /// A sample's part of an array over all tokens.
  template <class T>
  std::span<T> part(std::span<T> all, std::size_t i) const {
    return all.subspan(offsets_[i], offsets_[i + 1] - offsets_[i]);
  }
  Mask all_masks() const {
    return mask_;
  }
  Mask mask(std::size_t i) const {
    return part(Mask(mask_), i);
  }
  std::span<const float> logprobs() const {
    return logprobs_;
  }
  std::span<const float> reference() const {
    return reference_;
  }
  std::span<const float> values(std::size_t i) const {
    return values_.subspan(offsets_[i] + i, offsets_[i + 1] - offsets_[i] + 1);
  }
  float score(std::size_t i) const {
    return scores_[i];
  }
  bool truncated(std::size_t i) const {
    return truncated_[i] != 0;
  }

private:
  std::span<const std::uint8_t> mask_; ///< [T]
  std::vector<std::uint64_t> offsets_; ///< [N + 1]
  std::span<const float> logprobs_;    ///< [T]
  std::span<const float> reference_;   ///< [T], empty without reference
  std::span<const float> values_;      ///< [T + N]
  std::span<const float> scores_;      ///< [N]
  std::span<const std::uint8_t> truncated_;
};

/// What the function computes before it makes rows of it.
struct PpoArrays {
  std::vector<float> kl;
  std::vector<float> rewards;
  std::vector<float> advantages;
  std::vector<float> returns;
};

double shaped_score(const PpoBatch& batch, std::size_t i,
                    const Settings& settings) {
  const RewardSettings& reward = settings.reward;
  if (batch.truncated(i) && replaces_missing_eos(settings))
    return reward.missing_eos;
  const double score = reward.scale * batch.score(i) + reward.bias;
  return reward.clip > 0 ? std::clamp(score, -reward.clip, reward.clip) : score;
}

std::vector<float> token_kl(const PpoBatch& batch, KlEstimator kind) {
  std::vector<float> kl(batch.num_tokens());
  if (batch.reference().empty())
    return kl;
  for (std::size_t t = 0; t < kl.size(); ++t)
    if (batch.all_masks()[t] != 0)
      kl[t] = static_cast<float>(
        kl_estimate(kind, batch.logprobs()[t], batch.reference()[t]));
  return kl;
}

PpoArrays ppo_arrays(const PpoBatch& batch, const Settings& settings,
                     double kl_coef) {
  const AlgorithmSettings& algorithm = settings.algorithm;
  PpoArrays arrays;
  arrays.kl = token_kl(batch, parse_kl_estimator(algorithm.kl_estimator));
  arrays.rewards.resize(batch.num_tokens());
  arrays.advantages.resize(batch.num_tokens());
  arrays.returns.resize(batch.num_tokens());
  for (std::size_t i = 0; i < batch.num_samples(); ++i) {
    const auto rewards = batch.part(std::span(arrays.rewards), i);
    token_rewards(batch.part(std::span<const float>(arrays.kl), i),
                  batch.mask(i), kl_coef, shaped_score(batch, i, settings),
                  rewards);
    gae(rewards, batch.values(i), batch.mask(i), batch.truncated(i),
        {algorithm.gamma, algorithm.lam},
        batch.part(std::span(arrays.advantages), i),
        batch.part(std::span(arrays.returns), i));
  }
  if (algorithm.whiten)
    whiten(arrays.advantages, batch.all_masks());
  return arrays;
}

// -- metrics
// --------------------------------------------------------------------

void add_moments(Sums& sums, const std::string& name, const Moments& moments) {
  if (moments.count == 0)
    return;
  sums.add(name + "/mean", moments.sum, moments.count);
  sums.add_max(name + "/max", moments.max);
  sums.add_min(name + "/min", moments.min);
}

double sum_of(std::span<const float> numbers) {
  double total = 0;
  for (const float number : numbers)
    total += number;
  return total;
}

void add_sequence_metrics(Sums& sums, const PpoBatch& batch,
                          const PpoArrays& arrays) {
  Moments scores;
  Moments rewards;
  Moments responses;
  Moments prompts;
  double truncated = 0;
  for (std::size_t i = 0; i < batch.num_samples(); ++i) {
    const Mask mask = batch.mask(i);
    const auto own = std::count(mask.begin(), mask.end(), 1);
    const auto first = std::find(mask.begin(), mask.end(), 1) - mask.begin();
    scores.add(batch.score(i));
    rewards.add(sum_of(batch.part(std::span<const float>(arrays.rewards), i)));
    responses.add(static_cast<double>(own));
    prompts.add(static_cast<double>(first));
    truncated += batch.truncated(i) ? 1 : 0;
  }
  add_moments(sums, "critic/score", scores);
  add_moments(sums, "critic/rewards", rewards);
  add_moments(sums, "response_length", responses);
  add_moments(sums, "prompt_length", prompts);
  sums.add("response_length/clip_ratio", truncated,
           static_cast<double>(batch.num_samples()));
}

void add_token_metrics(Sums& sums, const PpoBatch& batch,
                       const PpoArrays& arrays) {
  Moments advantages;
  Moments returns;
  Moments values;
  Moments misses;
  advantages.add(arrays.advantages, batch.all_masks());
  returns.add(arrays.returns, batch.all_masks());
  for (std::size_t i = 0; i < batch.num_samples(); ++i) {
    const Mask mask = batch.mask(i);
    const auto wanted = batch.part(std::span<const float>(arrays.returns), i);
    for (std::size_t t = 0; t < mask.size(); ++t)
      if (mask[t] != 0) {
        values.add(batch.values(i)[t]);
        misses.add(double{wanted[t]} - batch.values(i)[t]);
      }
  }
  add_moments(sums, "critic/advantages", advantages);
  add_moments(sums, "critic/returns", returns);
  add_moments(sums, "critic/values", values);
  constexpr double tiny = 1e-5; // of verl's explained variance
  sums.add("critic/vf_explained_var",
           1.0 - misses.variance() / (returns.variance() + tiny), 1.0);
}

net::Column token_column(const char* key, const net::Column& like,
                         const std::vector<float>& numbers) {
  return net::make_column(key, DType::f32, like.lengths, numbers.data());
}

} // namespace

FunctionResult ppo_advantages(const net::Rows& rows,
                              const FunctionContext& context) {
  const AlgorithmSettings& algorithm = context.settings.algorithm;
  const bool with_reference = algorithm.kl_in == "reward";
  const PpoBatch batch(rows, with_reference);
  FunctionResult result;
  result.carried = context.carried;
  double kl_coef = with_reference ? algorithm.kl_coef : 0.0;
  const auto carried = context.carried.find("kl_coef");
  if (with_reference && carried != context.carried.end())
    kl_coef = carried->second;

  const PpoArrays arrays = ppo_arrays(batch, context.settings, kl_coef);
  const auto num_samples = static_cast<double>(batch.num_samples());
  add_sequence_metrics(result.sums, batch, arrays);
  add_token_metrics(result.sums, batch, arrays);
  if (with_reference && num_samples > 0) {
    const double kl = sum_of(arrays.kl);
    result.sums.add("actor/reward_kl_penalty", kl, num_samples);
    result.sums.add("actor/kl_coef", kl_coef, 1.0);
    if (algorithm.kl_target > 0)
      result.carried["kl_coef"]
        = adaptive_kl(kl_coef, kl / num_samples, algorithm.kl_target,
                      algorithm.kl_horizon, num_samples);
  }
  const net::Column& like = rows.at("loss_mask");
  result.rows.samples = rows.samples;
  result.rows.add(token_column("advantages", like, arrays.advantages));
  result.rows.add(token_column("returns", like, arrays.returns));
  result.rows.add(token_column("kl", like, arrays.kl));
  return result;
}

} // namespace troupe::models
