#include "models/rewards/reward_rows.hpp"

#include "config/base/log.hpp"
#include "config/settings/settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace troupe::models {

namespace {

constexpr std::size_t troubles_shown_a_step = 5;

const double* find_part(const RewardScore& score, const std::string& name) {
  for (const auto& [known, value] : score.parts)
    if (known == name)
      return &value;
  return nullptr;
}

/// Returns the reward of a sample without errors; a missing part is one.
double weighed(RewardScore& score, const RewardSettings& reward) {
  if (reward.weights.empty())
    return score.parts.front().second;
  double sum = 0;
  for (const auto& [name, weight] : reward.weights) {
    const auto* part = find_part(score, name);
    if (part == nullptr) {
      score.error = fmt::format(
        "it has no number '{}', which reward.weights wants", name);
      return 0;
    }
    sum += weight * *part;
  }
  return sum;
}

std::string error_text(const RewardItem& item, const RewardScore& score) {
  return fmt::format("reward of {}:{} ({}): {}", item.place.file,
                     item.place.line, item.id, score.error);
}

/// Counts errors and logs the first of a step, which ends the run if on_error
/// is fail.
class Troubles {
public:
  explicit Troubles(bool fail) : fail_(fail) {}

  void add(const std::string& text, bool late) {
    if (fail_)
      throw FailureError({.code = late ? Errc::deadline : Errc::bad_input,
                          .who = "",
                          .what = text,
                          .cause = ""});
    ++(late ? timeouts_ : errors_);
    if (errors_ + timeouts_ <= troubles_shown_a_step)
      log::models.warn(text);
  }
  void count_in(MetricSums& sums) const {
    sums.add_total("reward/errors", static_cast<double>(errors_));
    sums.add_total("reward/timeouts", static_cast<double>(timeouts_));
  }

private:
  bool fail_;
  std::size_t errors_ = 0;
  std::size_t timeouts_ = 0;
};

} // namespace

FunctionResult reward_rows(std::vector<SampleId> samples,
                           const std::vector<RewardItem>& items,
                           RewardReplies replies, const Settings& settings) {
  auto& scores = replies.scores;
  TROUPE_CHECK(items.size() == samples.size() && scores.size() == items.size(),
               "one score a sample");
  const auto& reward = settings.reward;
  const float without_score
    = reward.on_error == "skip" ? std::numeric_limits<float>::quiet_NaN() : 0;
  FunctionResult result;
  Troubles errors(reward.on_error == "fail");
  for (const auto& unmatched : replies.unmatched)
    errors.add("reward: " + unmatched, /*late=*/false);
  std::vector<float> rewards;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    auto& score = scores[i];
    const double value = score.error.empty() ? weighed(score, reward) : 0;
    if (!score.error.empty()) {
      errors.add(error_text(items[i], score), score.late);
      rewards.push_back(without_score);
      continue;
    }
    rewards.push_back(static_cast<float>(value));
    for (const auto& [name, part] : score.parts)
      result.sums.add("reward/" + name + "/mean", part, 1);
  }
  errors.count_in(result.sums);
  const std::vector<std::uint32_t> lengths(samples.size(), 1);
  result.rows.samples = std::move(samples);
  result.rows.add(
    net::make_column("scores", DType::f32, lengths, rewards.data()));
  return result;
}

} // namespace troupe::models
