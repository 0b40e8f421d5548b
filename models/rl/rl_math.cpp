#include "models/rl/rl_math.hpp"

#include "config/base/error.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

namespace troupe::models {

void gae(std::span<const float> rewards, std::span<const float> values,
         Mask mask, bool bootstrap, const GaeSettings& settings,
         std::span<float> advantages, std::span<float> returns) {
  const std::size_t length = rewards.size();
  TROUPE_CHECK(values.size() == length + 1, "values hold L + 1 entries");
  TROUPE_CHECK(mask.size() == length && advantages.size() == length
                 && returns.size() == length,
               "gae's arrays are of one length");
  double next_value = bootstrap ? values[length] : 0.0;
  double next_advantage = 0;
  for (std::size_t t = length; t-- > 0;) {
    if (mask[t] == 0) {
      advantages[t] = 0;
      returns[t] = 0;
      continue;
    }
    const double delta
      = rewards[t] + settings.gamma * next_value - double{values[t]};
    next_advantage = delta + settings.gamma * settings.lam * next_advantage;
    next_value = values[t];
    advantages[t] = static_cast<float>(next_advantage);
    returns[t] = static_cast<float>(next_advantage + next_value);
  }
}

double adaptive_lam(double alpha, Mask mask) {
  const auto length
    = static_cast<double>(mask.size())
      - static_cast<double>(std::ranges::count(mask, std::uint8_t{0}));
  return std::max(0.0, 1.0 - 1.0 / std::max(alpha * length, 1.0));
}

Deviation parse_deviation(std::string_view word) {
  TROUPE_CHECK(word == "sample" || word == "population",
               "algorithm.deviation is '" + std::string(word) + "'");
  return word == "sample" ? Deviation::sample : Deviation::population;
}

void whiten(std::span<float> x, Mask mask, bool shift_mean,
            Deviation deviation) {
  constexpr double tiny = 1e-8; // as in verl's masked_whiten
  Moments first;
  first.add(x, mask);
  const double n = first.count;
  if (n < 2) { // no spread to divide by
    for (std::size_t i = 0; i < x.size(); ++i)
      x[i] = mask[i] == 0 || shift_mean ? 0.0F : x[i];
    return;
  }
  const double mean = first.sum / (n + tiny);
  double squares = 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    if (mask[i] != 0)
      squares += (x[i] - mean) * (x[i] - mean);
  double variance = squares / (n + tiny);
  if (deviation == Deviation::sample)
    variance = variance * n / (n - 1);
  const double scale = 1.0 / std::sqrt(variance + tiny);
  const double offset = shift_mean ? 0.0 : mean;
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = mask[i] == 0 ? 0.0F
                        : static_cast<float>((x[i] - mean) * scale + offset);
}

std::vector<double> group_centred(std::span<const double> scores) {
  const double mean
    = std::accumulate(scores.begin(), scores.end(), 0.0)
      / static_cast<double>(std::max<std::size_t>(scores.size(), 1));
  std::vector<double> centred;
  for (const double score : scores)
    centred.push_back(score - mean);
  return centred;
}

namespace {

/// Returns the deviation of numbers from which their mean was subtracted.
double deviation_of(std::span<const double> centred, Deviation deviation) {
  double squares = 0;
  for (const double number : centred)
    squares += number * number;
  const auto n = static_cast<double>(centred.size());
  return std::sqrt(squares / (deviation == Deviation::sample ? n - 1 : n));
}

} // namespace

std::vector<double> group_normalised(std::span<const double> scores, double eps,
                                     Deviation deviation) {
  if (scores.size() == 1)
    return {scores.front() / (1.0 + eps)};
  auto normalised = group_centred(scores);
  const double spread = deviation_of(normalised, deviation);
  for (double& score : normalised)
    score /= spread + eps;
  return normalised;
}

std::vector<double> others_normalised(std::span<const double> scores,
                                      double eps, Deviation deviation) {
  if (scores.size() == 1)
    return {0.0};
  std::vector<double> normalised;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    std::vector<double> others(scores.begin(), scores.end());
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    const auto centred = group_centred(others);
    const double distance = scores[i] - (others.front() - centred.front());
    // compared as they are: equal scores need not have a deviation of 0 once
    // their mean is rounded
    const auto [least, most] = std::ranges::minmax(others);
    const double spread
      = least == most ? 0.0 : deviation_of(centred, deviation);
    normalised.push_back(spread > 0 ? distance / (spread + eps) : distance);
  }
  return normalised;
}

std::vector<double> leave_one_out(std::span<const double> scores) {
  if (scores.size() == 1)
    return {scores.front()};
  // score - mean of the others = (score - mean of all) n / (n - 1)
  auto left = group_centred(scores);
  const auto n = static_cast<double>(scores.size());
  for (double& score : left)
    score *= n / (n - 1);
  return left;
}

void discounted_sums(std::span<const float> x, Mask mask, double gamma,
                     std::span<float> sums) {
  TROUPE_CHECK(x.size() == mask.size() && x.size() == sums.size(),
               "discounted_sums' arrays are of one length");
  double next = 0;
  for (std::size_t t = x.size(); t-- > 0;) {
    next = mask[t] != 0 ? x[t] + gamma * next : 0.0;
    sums[t] = static_cast<float>(next);
  }
}

void returns_over(std::span<const float> rewards, Mask mask, double baseline,
                  std::span<float> advantages) {
  discounted_sums(rewards, mask, /*gamma=*/1.0, advantages);
  for (std::size_t t = 0; t < advantages.size(); ++t)
    if (mask[t] != 0)
      advantages[t] = static_cast<float>(double{advantages[t]} - baseline);
}

KlEstimator parse_kl_estimator(std::string_view word) {
  if (word == "k1")
    return KlEstimator::k1;
  if (word == "k2")
    return KlEstimator::k2;
  if (word == "k3")
    return KlEstimator::k3;
  throw ConfigError({.place = {},
                     .path = "algorithm.kl_estimator",
                     .expected = "k1, k2 or k3",
                     .got = "'" + std::string(word) + "'",
                     .hint = ""});
}

namespace {

constexpr double kl_limit = 10.0; // of k3, as in the golden cases

double unclamped_k3(double difference) {
  return std::exp(-difference) + difference - 1.0;
}

} // namespace

double kl_estimate(KlEstimator kind, double logp, double ref_logp) {
  const double d = logp - ref_logp;
  switch (kind) {
  case KlEstimator::k1:
    return d;
  case KlEstimator::k2:
    return 0.5 * d * d;
  case KlEstimator::k3:
    return std::clamp(unclamped_k3(d), -kl_limit, kl_limit);
  }
  return d;
}

void token_rewards(std::span<const float> kl, Mask mask, double kl_coef,
                   double score, std::span<float> rewards) {
  TROUPE_CHECK(kl.size() == mask.size() && kl.size() == rewards.size(),
               "token_rewards' arrays are of one length");
  bool score_is_due = true;
  for (std::size_t t = kl.size(); t-- > 0;) {
    if (mask[t] == 0) {
      rewards[t] = 0;
      continue;
    }
    const double due = score_is_due ? score : 0.0;
    rewards[t] = static_cast<float>(due - kl_coef * kl[t]);
    score_is_due = false;
  }
}

double adaptive_kl(double coef, double kl, double target, double horizon,
                   double num_samples) {
  const double error = std::clamp(kl / target - 1.0, -0.2, 0.2);
  return coef * (1.0 + error * num_samples / horizon);
}

// -- means
// ----------------------------------------------------------------------

void Moments::add(double x) {
  max = count == 0 ? x : std::max(max, x);
  min = count == 0 ? x : std::min(min, x);
  count += 1;
  sum += x;
  sum_squares += x * x;
}

void Moments::add(std::span<const float> x, Mask mask) {
  TROUPE_CHECK(x.size() == mask.size(), "numbers and mask are of one length");
  for (std::size_t i = 0; i < x.size(); ++i)
    if (mask[i] != 0)
      add(x[i]);
}

double Moments::mean() const {
  return count == 0 ? 0.0 : sum / count;
}

double Moments::variance() const {
  return count == 0 ? 0.0
                    : std::max(0.0, sum_squares / count - mean() * mean());
}

namespace {

double weight_of_token(LossMean kind, double length,
                       const MeanDenominators& by) {
  switch (kind) {
  case LossMean::token:
    return 1.0 / by.tokens;
  case LossMean::sequence:
    return 1.0 / (by.sequences * length);
  case LossMean::sequence_sum:
    return 1.0 / by.sequences;
  case LossMean::horizon_sum:
    return 1.0 / by.horizon;
  case LossMean::sequence_horizon:
    return 1.0 / (by.sequences * by.horizon);
  }
  return 0.0;
}

} // namespace

std::vector<float> loss_weights(LossMean kind, Mask mask,
                                std::span<const std::int64_t> cu_seqlens,
                                const MeanDenominators& denominators) {
  std::vector<float> weights(mask.size());
  for (std::size_t i = 0; i + 1 < cu_seqlens.size(); ++i) {
    const auto begin = static_cast<std::size_t>(cu_seqlens[i]);
    const auto end = static_cast<std::size_t>(cu_seqlens[i + 1]);
    double length = 0;
    for (std::size_t t = begin; t < end; ++t)
      length += mask[t] != 0 ? 1 : 0;
    if (length == 0)
      continue;
    const auto weight
      = static_cast<float>(weight_of_token(kind, length, denominators));
    for (std::size_t t = begin; t < end; ++t)
      weights[t] = mask[t] != 0 ? weight : 0.0F;
  }
  return weights;
}

} // namespace troupe::models
