// The section `algorithm` of a run's settings. Its parts are structs of what
// belongs together; their keys are in the section itself, except those of
// DistillationSettings and of CorrectionSettings, but for max_lag.
#pragma once

#include <array>
#include <optional>
#include <string>

namespace troupe {

struct ClipRatio {
  double low = 0.2;
  double high = 0.2;
  bool operator==(const ClipRatio&) const = default;
};

/// Sums of future rewards.
struct DiscountSettings {
  double gamma = 1.0;
  double lam = 0.95;
  double lam_alpha = 0.0; ///< 0: off
  bool bootstrap = true;
};

/// Comparison of the responses to a prompt.
struct GroupSettings {
  std::string baseline = "all";     ///< all | others
  std::string deviation = "sample"; ///< sample | population
  double deviation_eps = 1e-6;
  bool whiten_batch = false;
  int rounds = 1; ///< of `algorithm.dynamic_sampling`; 1: off
};

/// Adaptive controller of the weight of the KL term.
struct KlControlSettings {
  double target = 0.0;    ///< > 0 turns it on
  double horizon = 10000; ///< samples
};

/// Policy loss.
struct PolicyLossSettings {
  std::string kind = "ppo";
  ClipRatio clip_ratio;
  double dual_clip = 0.0; ///< 0: off
  std::array<double, 2> sapo_tau = {1.0, 1.05};
  double cov_share = 2e-4;
  std::array<double, 2> cov_range = {1.0, 5.0};
  double cov_kl_coef = 1.0;
  double ptx_coef = 0.0; ///< of the language-model loss of data.ptx; 0: none
  bool sampling_mask = false;  ///< log-probabilities over what sampling kept
  bool routing_replay = false; ///< training uses the experts of generation
};

/// Largest lag of a plan. More is a typo: nothing overlaps further than one
/// step, and every step of lag keeps a step's rows in memory.
inline constexpr int largest_lag = 8;

/// `algorithm.correction`: samples were drawn by other numbers than training
/// computes; and `algorithm.max_lag`: by weights that are so much older.
struct CorrectionSettings {
  std::string kind = "none";
  double cap = 2.0;
  double floor = 0.0;
  std::optional<int> max_lag; ///< steps; {}: no search lags, written plans may
};

/// Value loss.
struct ValueLossSettings {
  double clip = 0.2; ///< 0: off
  bool norm = false;
};

/// Losses over preferences: of workflow dpo, of kto and of reward models.
struct PreferenceSettings {
  std::string kind = "dpo"; ///< dpo | ipo | simpo | orpo
  double beta = 0.1;        ///< dpo, kto
  double label_smoothing = 0.0;
  double margin = 0.5;             ///< simpo
  double desirable_weight = 1.0;   ///< kto
  double undesirable_weight = 1.0; ///< kto
  double center_coef = 0.0;        ///< reward; 0: off
};

/// `algorithm.distillation`: loss of workflow distillation.
struct DistillationSettings {
  int top_k = 64;    ///< tokens of the teacher per position
  double beta = 1.0; ///< 0: forward KL, 1: reverse KL
};

struct AlgorithmSettings {
  std::string like = "none";     ///< program whose conventions hold
  std::string advantage = "gae"; ///< gae | group | rloo | remax | reinforce_pp
  DiscountSettings discount;
  GroupSettings group;
  bool whiten = true;
  std::string kl_in = "reward";    ///< reward | loss | none
  std::string kl_estimator = "k1"; ///< k1 | k2 | k3
  double kl_coef = 0.1;
  KlControlSettings kl_control;
  PolicyLossSettings loss;
  ValueLossSettings value;
  std::string loss_mean = "token"; ///< token | sequence | horizon
  double entropy_coef = 0.0;
  std::string old_logprobs = "rollout"; ///< rollout | recompute
  CorrectionSettings correction;
  PreferenceSettings preference;
  DistillationSettings distillation;
  int mini_batches = 4;
  int epochs = 1;
  std::string recompute = "auto"; ///< activations: auto | true | false
};

} // namespace troupe
