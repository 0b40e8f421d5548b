#include "config/settings/conventions.hpp"

#include "config/settings/settings_schema.hpp"

#include <algorithm>
#include <array>

namespace troupe {

namespace {

/// One row: where `key` is `value` and, if named, `also` is `also_value`.
struct ConventionRow {
  const char* key;
  const char* value;
  const char* also = "";
  const char* also_value = "";
  const char* path;
  const char* set;
};

constexpr const char* loss = "algorithm.loss";
constexpr const char* correction_key = "algorithm.correction.kind";
constexpr const char* pair_loss = "algorithm.pair_loss";
constexpr const char* like_key = "algorithm.like";
constexpr const char* advantage = "algorithm.advantage";
constexpr const char* kl_in = "algorithm.kl_in";

/// The first row for a path holds. Rows of a program follow its own defaults,
/// but for the KL term of OpenRLHF's groups, which is that of its GRPO recipe
/// (--use_kl_loss --kl_estimator k3; in the reward it exists with reinforce_pp
/// only):
/// verl 0.9.1 (trainer/config, core_algos.py), OpenRLHF 0.11.2 (its command
/// line, loss.py, experience_maker.py), TRL 1.16 (GRPOConfig, grpo_trainer.py),
/// NeMo-RL (examples/configs/grpo_math_1B.yaml, advantage_estimator.py), AReaL
/// 1.0.4 (PPOActorConfig, the norms of examples/math/gsm8k_grpo.yaml).
constexpr auto convention_rows = std::to_array<ConventionRow>({
  // numbers of papers; of cispo, whose paper gives none, that of ScaleRL
  // (arXiv 2510.13786): at most 5
  {loss, "gspo", "", "", "algorithm.clip_ratio", "[0.0003, 0.0004]"},
  {loss, "gspo", "", "", "algorithm.loss_mean", "sequence"},
  {loss, "cispo", "", "", "algorithm.clip_ratio", "[1, 4]"},
  {loss, "sapo", "", "", "algorithm.loss_mean", "sequence"},
  {loss, "gmpo", "", "", "algorithm.clip_ratio", "0.4"},
  {loss, "gmpo", "", "", "algorithm.loss_mean", "sequence"},
  {correction_key, "icepop", "", "", "algorithm.correction.cap", "5"},
  {correction_key, "icepop", "", "", "algorithm.correction.floor", "0.5"},
  {correction_key, "sequence_mask", "", "", "algorithm.correction.cap", "3"},
  {correction_key, "geometric_mask", "", "", "algorithm.correction.cap", "5"},
  {correction_key, "geometric_mask", "", "", "algorithm.correction.floor",
   "0.5"},
  {correction_key, "rejection", "", "", "algorithm.correction.cap", "1.001"},
  {correction_key, "rejection", "", "", "algorithm.correction.floor", "0.999"},
  {pair_loss, "simpo", "", "", "algorithm.beta", "2"},
  // masks: training computes what the sampler drew from
  {"algorithm.sampling_mask", "true", "", "", "rollout.logprobs", "sampled"},
  // verl
  {like_key, "verl", "", "", kl_in, "none"},
  {like_key, "verl", kl_in, "loss", "algorithm.kl_estimator", "k3"},
  {like_key, "verl", kl_in, "reward", "algorithm.kl_estimator", "k1"},
  {like_key, "verl", "", "", "algorithm.kl_coef", "0.001"},
  {like_key, "verl", "", "", "algorithm.loss_mean", "token"},
  {like_key, "verl", "", "", "algorithm.dual_clip", "3"},
  {like_key, "verl", "", "", "algorithm.deviation", "sample"},
  {like_key, "verl", "", "", "algorithm.deviation_eps", "1.0e-6"},
  {like_key, "verl", "", "", "algorithm.lam", "1"},
  {like_key, "verl", "", "", "algorithm.bootstrap", "false"},
  {like_key, "verl", "", "", "algorithm.value_clip", "0.5"},
  // OpenRLHF; its GRPO is the estimator group_norm with the KL in the loss
  {like_key, "openrlhf", advantage, "group", kl_in, "loss"},
  {like_key, "openrlhf", advantage, "rloo", kl_in, "loss"},
  {like_key, "openrlhf", advantage, "gae", kl_in, "reward"},
  {like_key, "openrlhf", advantage, "reinforce_pp", kl_in, "reward"},
  {like_key, "openrlhf", kl_in, "loss", "algorithm.kl_estimator", "k3"},
  {like_key, "openrlhf", kl_in, "reward", "algorithm.kl_estimator", "k1"},
  {like_key, "openrlhf", "", "", "algorithm.kl_coef", "0.01"},
  {like_key, "openrlhf", "", "", "algorithm.loss_mean", "token"},
  {like_key, "openrlhf", advantage, "group", "algorithm.deviation", "sample"},
  {like_key, "openrlhf", "", "", "algorithm.deviation", "population"},
  {like_key, "openrlhf", "", "", "algorithm.deviation_eps", "1.0e-9"},
  {like_key, "openrlhf", "", "", "algorithm.lam", "1"},
  {like_key, "openrlhf", "", "", "algorithm.bootstrap", "false"},
  {like_key, "openrlhf", "", "", "algorithm.value_clip", "0.5"},
  {like_key, "openrlhf", advantage, "gae", "reward.clip", "10"},
  // TRL
  {like_key, "trl", "", "", kl_in, "none"},
  {like_key, "trl", kl_in, "loss", "algorithm.kl_estimator", "k3"},
  {like_key, "trl", "", "", "algorithm.loss_mean", "token"},
  {like_key, "trl", "", "", "algorithm.deviation", "sample"},
  {like_key, "trl", "", "", "algorithm.deviation_eps", "1.0e-4"},
  // NeMo-RL
  {like_key, "nemo", "", "", kl_in, "loss"},
  {like_key, "nemo", "", "", "algorithm.kl_estimator", "k3"},
  {like_key, "nemo", "", "", "algorithm.kl_coef", "0.01"},
  {like_key, "nemo", "", "", "algorithm.loss_mean", "token"},
  {like_key, "nemo", "", "", "algorithm.baseline", "others"},
  {like_key, "nemo", "", "", "algorithm.deviation", "sample"},
  {like_key, "nemo", "", "", "algorithm.deviation_eps", "1.0e-6"},
  // AReaL
  {like_key, "areal", advantage, "gae", kl_in, "reward"},
  {like_key, "areal", "", "", kl_in, "none"},
  {like_key, "areal", "", "", "algorithm.kl_estimator", "k1"},
  {like_key, "areal", "", "", "algorithm.kl_coef", "0.1"},
  {like_key, "areal", "", "", "algorithm.loss_mean", "token"},
  {like_key, "areal", "", "", "algorithm.deviation", "sample"},
  {like_key, "areal", "", "", "algorithm.deviation_eps", "1.0e-5"},
  {like_key, "areal", "", "", "algorithm.whiten_batch", "true"},
  {like_key, "areal", "", "", "algorithm.lam", "1"},
  {like_key, "areal", "", "", "algorithm.value_clip", "0.5"},
  {like_key, "areal", "", "", "reward.clip", "20"},
});

bool has_value(const Settings& settings, const std::string& path,
               const std::string& value) {
  return value_text(*find_field(path).first, settings, "") == value;
}

bool row_holds(const ConventionRow& row, const Settings& settings) {
  return has_value(settings, row.key, row.value)
         && (*row.also == '\0'
             || has_value(settings, row.also, row.also_value));
}

/// Returns true if the workflow reads the row's choice and the setting that it
/// sets, and the latter is used.
bool row_matters(const ConventionRow& row, const Settings& settings) {
  const Field& field = *find_field(row.path).first;
  return field_applies(*find_field(row.key).first, settings.workflow)
         && field_applies(field, settings.workflow)
         && needs_hold(field, settings);
}

} // namespace

std::optional<Convention> convention_for(const Settings& settings,
                                         const std::string& path) {
  for (const auto& row : convention_rows)
    if (row.path == path && row_holds(row, settings)
        && row_matters(row, settings))
      return Convention{.path = path,
                        .value = row.set,
                        .by = std::string(row.key) + ": " + row.value};
  return std::nullopt;
}

const std::vector<std::string>& convention_paths() {
  static const std::vector<std::string> paths = [] {
    std::vector<std::string> all;
    for (const auto& row : convention_rows)
      if (std::ranges::find(all, row.path) == all.end())
        all.emplace_back(row.path);
    return all;
  }();
  return paths;
}

std::vector<Convention> conventions_in(const Settings& settings) {
  std::vector<Convention> found;
  for (const auto& path : convention_paths())
    if (!was_set(settings, path))
      if (auto convention = convention_for(settings, path))
        found.push_back(*std::move(convention));
  return found;
}

} // namespace troupe
