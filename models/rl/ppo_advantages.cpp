#include "models/rl/ppo_advantages.hpp"

#include "config/base/error.hpp"
#include "config/settings/settings.hpp"
#include "models/rl/cov_tokens.hpp"
#include "models/rl/rollout_batch.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::models {
namespace {

/// Scale of the critic's outputs: values are `mean + deviation * output`, with
/// the moments of all returns so far. Initially outputs are values.
class ReturnScale {
public:
  ReturnScale() = default;
  explicit ReturnScale(const CarriedValues& carried) {
    const auto number = [&](const char* key) {
      const auto found = carried.find(key);
      return found == carried.end() ? 0.0 : found->second;
    };
    seen_.count = number("returns_count");
    seen_.sum = number("returns_sum");
    seen_.sum_squares = number("returns_sum_squares");
  }
  void add(std::span<const float> returns, Mask mask) {
    seen_.add(returns, mask);
  }
  void keep(CarriedValues& carried) const {
    carried["returns_count"] = seen_.count;
    carried["returns_sum"] = seen_.sum;
    carried["returns_sum_squares"] = seen_.sum_squares;
  }
  float value(float output) const {
    return static_cast<float>(seen_.mean() + deviation() * output);
  }
  float output(float value) const {
    return static_cast<float>((value - seen_.mean()) / deviation());
  }

private:
  double deviation() const {
    constexpr double least = 1e-5; // equal returns have no spread
    return seen_.count == 0 ? 1.0
                            : std::max(least, std::sqrt(seen_.variance()));
  }
  Moments seen_;
};

/// The batch with the critic's outputs.
class PpoBatch : public RolloutBatch {
public:
  PpoBatch(const net::Rows& rows, bool with_reference, const ReturnScale& scale)
    : RolloutBatch(rows),
      logprobs_T_(tokens_of(rows, "logprobs")) {
    if (with_reference)
      reference_T_ = tokens_of(rows, "ref_logprobs");
    const auto outputs = rows.at("values").as<float>();
    TROUPE_CHECK(outputs.size() == num_tokens() + num_samples(),
                 "values hold L + 1 entries a sample");
    for (const float output : outputs)
      values_.push_back(scale.value(output));
  }
  std::span<const float> logprobs() const {
    return logprobs_T_;
  }
  std::span<const float> reference() const {
    return reference_T_;
  }
  std::span<const float> values(std::size_t i) const {
    const auto begin = offsets()[i];
    return std::span(values_).subspan(begin + i, offsets()[i + 1] - begin + 1);
  }

private:
  std::span<const float> logprobs_T_;
  std::span<const float> reference_T_; ///< empty without reference
  std::vector<float> values_;          ///< [T + N]
};

/// Intermediate arrays, before they become rows.
struct PpoArrays {
  std::vector<float> kl;
  std::vector<float> rewards;
  std::vector<float> advantages;
  std::vector<float> returns;
};

/// Computes advantages and returns of a sample. With lam_alpha = a its
/// advantages have lambda 1 - 1 / (a length), its returns `lam` (VAPO, Yue et
/// al. 2025, arXiv 2504.05118: decoupled and length-adaptive GAE).
void sum_rewards(const PpoBatch& batch, std::size_t i,
                 std::span<const float> rewards,
                 const DiscountSettings& discount, PpoArrays& arrays) {
  const bool bootstrap = batch.truncated(i) && discount.bootstrap;
  const auto advantages = batch.part(std::span(arrays.advantages), i);
  const auto returns = batch.part(std::span(arrays.returns), i);
  const auto run = [&](double lam, std::span<float> kept_returns) {
    gae(rewards, batch.values(i), batch.mask(i), bootstrap,
        {discount.gamma, lam}, advantages, kept_returns);
  };
  run(discount.lam, returns);
  if (discount.lam_alpha > 0) {
    std::vector<float> unused(returns.size());
    run(adaptive_lam(discount.lam_alpha, batch.mask(i)), unused);
  }
}

PpoArrays ppo_arrays(const PpoBatch& batch, const Settings& settings,
                     double kl_coef) {
  const AlgorithmSettings& algorithm = settings.algorithm;
  PpoArrays arrays;
  arrays.kl = token_kl(batch, batch.logprobs(), batch.reference(),
                       parse_kl_estimator(algorithm.kl_estimator));
  arrays.rewards.resize(batch.num_tokens());
  arrays.advantages.resize(batch.num_tokens());
  arrays.returns.resize(batch.num_tokens());
  for (std::size_t i = 0; i < batch.num_samples(); ++i) {
    const auto rewards = batch.part(std::span(arrays.rewards), i);
    token_rewards(batch.part(std::span<const float>(arrays.kl), i),
                  batch.mask(i), kl_coef, shaped_score(batch, i, settings),
                  rewards);
    sum_rewards(batch, i, rewards, algorithm.discount, arrays);
  }
  if (algorithm.whiten)
    whiten(arrays.advantages, batch.mask(), /*shift_mean=*/true,
           parse_deviation(algorithm.group.deviation));
  return arrays;
}

void add_token_metrics(MetricSums& sums, const PpoBatch& batch,
                       const PpoArrays& arrays) {
  Moments advantages;
  Moments returns;
  Moments values;
  Moments misses;
  advantages.add(arrays.advantages, batch.mask());
  returns.add(arrays.returns, batch.mask());
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
  constexpr double tiny = 1e-5; // as in verl's explained variance
  sums.add("critic/vf_explained_var",
           1.0 - misses.variance() / (returns.variance() + tiny), 1.0);
}

} // namespace

FunctionResult ppo_advantages(const net::Rows& rows,
                              const FunctionContext& context) {
  const AlgorithmSettings& algorithm = context.settings.algorithm;
  const bool with_reference = algorithm.kl_in == "reward";
  ReturnScale scale;
  if (algorithm.value.norm)
    scale = ReturnScale(context.carried);
  const PpoBatch batch(rows, with_reference, scale);
  FunctionResult result;
  result.carried = context.carried;
  double kl_coef = with_reference ? algorithm.kl_coef : 0.0;
  const auto carried = context.carried.find("kl_coef");
  if (with_reference && carried != context.carried.end())
    kl_coef = carried->second;

  PpoArrays arrays = ppo_arrays(batch, context.settings, kl_coef);
  const auto num_scored = static_cast<double>(batch.num_scored());
  add_response_metrics(result.sums, batch, arrays.rewards);
  add_token_metrics(result.sums, batch, arrays);
  if (with_reference && num_scored > 0) {
    const double kl = sum_of(arrays.kl);
    result.sums.add("actor/reward_kl_penalty", kl, num_scored);
    result.sums.add("actor/kl_coef", kl_coef, 1.0);
    if (algorithm.kl_control.target > 0)
      result.carried["kl_coef"]
        = adaptive_kl(kl_coef, kl / num_scored, algorithm.kl_control.target,
                      algorithm.kl_control.horizon, num_scored);
  }
  if (algorithm.value.norm) {
    scale.add(arrays.returns, batch.mask());
    scale.keep(result.carried);
    for (std::size_t t = 0; t < arrays.returns.size(); ++t)
      if (batch.mask()[t] != 0)
        arrays.returns[t] = scale.output(arrays.returns[t]);
  }
  result.rows.samples = rows.samples;
  add_token_column(result.rows, batch, "advantages", arrays.advantages);
  add_token_column(result.rows, batch, "returns", arrays.returns);
  add_token_column(result.rows, batch, "kl", arrays.kl);
  if (chooses_cov_tokens(context.settings))
    add_cov_tokens(result.rows, batch, arrays.advantages, batch.logprobs(),
                   context);
  add_train_mask(result.rows, batch,
                 context.settings.reward.long_response.mask_truncated);
  return result;
}

FunctionEntry ppo_advantages_entry() {
  const auto kl
    = [](const Settings& s) { return s.algorithm.kl_in == "reward"; };
  const auto adapts = [](const Settings& s) {
    return s.algorithm.kl_in == "reward" && s.algorithm.kl_control.target > 0;
  };
  const auto scales = [](const Settings& s) { return s.algorithm.value.norm; };
  return {.name = "ppo_advantages",
          .function = &ppo_advantages,
          .reads = {{"loss_mask"},
                    {"scores"},
                    {"logprobs"},
                    {"values"},
                    {"truncated"},
                    {"ref_logprobs", kl}},
          .carries = {{{"kl_coef", adapts}, "algorithm.kl_coef"},
                      {{"returns_count", scales}},
                      {{"returns_sum", scales}},
                      {{"returns_sum_squares", scales}}}};
}

} // namespace troupe::models
