// The arithmetic of reinforcement learning on host memory: pure functions over
// spans of one sequence (or of a packed batch), floats in, double inside.
// Conventions are those of the golden cases (shared/golden/README, rl/).
//
// Masks are 1 on the model's own tokens. Per-token arrays are aligned with the
// sequence: entry t belongs to token t. L is a sequence's length, T the tokens
// of a packed batch, N its sequences.
#pragma once

#include "config/settings/settings_types.hpp"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace troupe::models {

using Mask = std::span<const std::uint8_t>;

// -- advantages ---------------------------------------------------------------

struct GaeSettings {
  double gamma = DiscountSettings{}.gamma; ///< discount per token
  double lam = DiscountSettings{}.lam;     ///< weight of longer look-aheads
};

/// Generalized advantage estimation (Schulman et al. 2016) of one sequence:
/// delta_t = r_t + gamma V_{t+1} - V_t; A_t = delta_t + gamma lam A_{t+1};
/// returns = A + V. Masked entries (prompt, other speakers) are skipped: t + 1
/// is the next of the model's own tokens; masked ones get 0. After the last
/// one, V is `values[L]` if `bootstrap` (the response was truncated), else 0.
/// @param rewards [L]
/// @param values [L + 1], values[t] is V before token t
/// @param advantages, returns [L], out
void gae(std::span<const float> rewards, std::span<const float> values,
         Mask mask, bool bootstrap, const GaeSettings& settings,
         std::span<float> advantages, std::span<float> returns);

/// Divisor of a variance: n - 1 (unbiased) or n.
enum class Deviation : std::uint8_t { sample, population };

/// Parses `algorithm.deviation`, which the settings' table has checked.
Deviation parse_deviation(std::string_view word);

/// Returns 1 - 1 / (alpha times the unmasked tokens), at least 0: the lambda of
/// VAPO (Yue et al. 2025) for a response of this length.
double adaptive_lam(double alpha, Mask mask);

/// Computes (x - mean) * rsqrt(var + 1e-8) over unmasked entries; masked
/// entries become 0. Without `shift_mean` the mean is added back. A single
/// entry has no spread: it becomes 0, or stays without `shift_mean`.
void whiten(std::span<float> x, Mask mask, bool shift_mean = true,
            Deviation deviation = Deviation::sample);

/// Returns (score - mean) / (deviation + eps) for the scores of one group
/// (GRPO; Shao et al. 2024). A single one: score / (1 + eps).
std::vector<double> group_normalised(std::span<const double> scores, double eps,
                                     Deviation deviation = Deviation::sample);
/// Returns (score - mean) / (deviation + eps) with mean and deviation of the
/// other scores; undivided where these are all equal, or a single one
/// (NeMo-RL's use_leave_one_out_baseline). A single score: 0.
std::vector<double> others_normalised(std::span<const double> scores,
                                      double eps, Deviation deviation);
/// Returns score - mean (Dr. GRPO; Liu et al. 2025).
std::vector<double> group_centred(std::span<const double> scores);
/// Returns score - mean of the others (RLOO; Ahmadian et al. 2024); a single
/// one is kept.
std::vector<double> leave_one_out(std::span<const double> scores);
/// Computes S_t = x_t + gamma S_{t+1} over runs of unmasked tokens; masked ones
/// get 0.
/// @param x, sums [L]
void discounted_sums(std::span<const float> x, Mask mask, double gamma,
                     std::span<float> sums);

/// Computes the sums of the future rewards minus `baseline`, on unmasked
/// tokens; 0 elsewhere (ReMax; Li et al. 2024).
/// @param rewards, advantages [L]
void returns_over(std::span<const float> rewards, Mask mask, double baseline,
                  std::span<float> advantages);

// -- divergence from the reference
// ---------------------------------------------

/// Estimators of KL(policy, reference) from one token (Schulman 2020): with d =
/// logp - ref: k1 = d; k2 = d^2 / 2; k3 = exp(-d) + d - 1 in [-10, 10].
enum class KlEstimator : std::uint8_t { k1, k2, k3 };

/// Parses k1, k2 or k3. Throws ConfigError for any other word.
KlEstimator parse_kl_estimator(std::string_view word);
double kl_estimate(KlEstimator kind, double logp, double ref_logp);

/// Computes reward_t = -kl_coef * kl_t on unmasked tokens, with `score` added
/// at the last of them; masked entries get 0. A sequence without unmasked
/// tokens gets zeros.
void token_rewards(std::span<const float> kl, Mask mask, double kl_coef,
                   double score, std::span<float> rewards);

/// Returns coef * (1 + clip(kl / target - 1, -0.2, 0.2) * num_samples /
/// horizon): the adaptive controller (Ziegler et al. 2019).
double adaptive_kl(double coef, double kl, double target, double horizon,
                   double num_samples);

// -- means
// ----------------------------------------------------------------------

/// Running mean, extremes and variance of masked numbers.
struct Moments {
  double count = 0;
  double sum = 0;
  double sum_squares = 0;
  double max = 0; ///< undefined while count is 0
  double min = 0; ///< undefined while count is 0

  void add(double x);
  void add(std::span<const float> x, Mask mask);
  double mean() const;     ///< 0 if empty
  double variance() const; ///< population variance; 0 if empty
};

/// Reduction of per-token losses to one number; x is summed over unmasked
/// tokens.
enum class LossMean : std::uint8_t {
  token,           ///< sum / tokens
  sequence,        ///< mean over sequences of their token means
  sequence_sum,    ///< mean over sequences of their sums
  horizon_sum,     ///< sum / horizon
  sequence_horizon ///< sum / (sequences * horizon): Dr. GRPO
};

/// Totals of the whole mini-batch, so that the losses of its parts add up to
/// its loss.
struct MeanDenominators {
  double tokens = 1;
  double sequences = 1;
  double horizon = 1; ///< tokens
};

/// Returns weights w_T such that sum(w_T * x_T) is the requested mean.
/// Sequences without unmasked tokens have weight 0.
/// @param cu_seqlens [N + 1] offsets into T
std::vector<float> loss_weights(LossMean kind, Mask mask,
                                std::span<const std::int64_t> cu_seqlens,
                                const MeanDenominators& denominators);

} // namespace troupe::models
