#include "runtime/metrics/step_metrics.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>

namespace troupe::runtime {

using Json = nlohmann::ordered_json;

namespace {

/// As in docs/interface.md. A name that ends in '/' stands for all names
/// below it.
constexpr std::array metric_order{
  "train/loss",
  "train/accuracy",
  "train/tokens",
  "train/",
  "actor/pg_loss",
  "actor/pg_clipfrac",
  "actor/pg_clipfrac_lower",
  "actor/ppo_kl",
  "actor/kl_loss",
  "actor/kl_coef",
  "actor/entropy",
  "actor/grad_norm",
  "actor/lr",
  "actor/reward_kl_penalty",
  "actor/",
  "critic/vf_loss",
  "critic/vf_clipfrac",
  "critic/vpred_mean",
  "critic/vf_explained_var",
  "critic/grad_norm",
  "critic/lr",
  "critic/score/",
  "critic/rewards/",
  "critic/advantages/",
  "critic/returns/",
  "critic/values/",
  "critic/",
  "reward/",
  "frac_reward_zero_std",
  "response_length/mean",
  "response_length/",
  "prompt_length/mean",
  "prompt_length/",
  "timing_s/gen",
  "timing_s/reward",
  "timing_s/ref",
  "timing_s/values",
  "timing_s/old_log_prob",
  "timing_s/adv",
  "timing_s/update_critic",
  "timing_s/update_actor",
  "timing_s/move",
  "timing_s/testing",
  "timing_s/save_checkpoint",
  "timing_s/snapshot",
  "timing_s/step",
  "timing_s/",
  "perf/throughput",
  "perf/total_num_tokens",
  "perf/time_per_step",
  "perf/predicted_step_s",
  "perf/max_memory_gb",
  "perf/device_memory_gb",
  "perf/moved_gb",
  "perf/mfu/",
  "perf/idle_ratio",
  "perf/idle/",
  "perf/",
  "training/global_step",
  "training/epoch",
  "training/attempt",
  "training/",
  "data/",
  "val-core/",
};

constexpr std::array counted_metrics{
  "train/tokens",         "train/skipped_steps",   "actor/skipped_steps",
  "critic/skipped_steps", "perf/total_num_tokens", "training/global_step",
  "training/epoch",       "training/attempt",      "data/bad_rows",
  "reward/errors",        "reward/timeouts",
};

std::size_t place_in_order(const std::string& name) {
  // the most specific entry wins: an exact name, else the longest prefix
  std::size_t best = metric_order.size();
  std::size_t best_length = 0;
  for (std::size_t i = 0; i < metric_order.size(); ++i) {
    const std::string_view entry = metric_order[i];
    const bool fits
      = entry == name || (entry.back() == '/' && name.starts_with(entry));
    if (fits && entry.size() > best_length) {
      best = i;
      best_length = entry.size();
    }
  }
  return best;
}

Json number_json(const std::string& name, double value) {
  if (!std::isfinite(value))
    return {};
  const bool counted
    = std::find(counted_metrics.begin(), counted_metrics.end(), name)
        != counted_metrics.end()
      || name.starts_with("data/rows/");
  if (counted && value == std::floor(value))
    return static_cast<std::int64_t>(value);
  return value;
}

} // namespace

std::optional<double> StepMetrics::find(std::string_view name) const {
  for (const auto& [key, value] : values)
    if (key == name)
      return value;
  return std::nullopt;
}

void StepMetrics::set(std::string name, double value) {
  for (auto& [key, old] : values)
    if (key == name) {
      old = value;
      return;
    }
  values.emplace_back(std::move(name), value);
}

StepMetrics last_metrics(const std::filesystem::path& file,
                         std::uint32_t step) {
  StepMetrics last{.step = step};
  std::ifstream lines{file};
  for (std::string line; std::getline(lines, line);) {
    const auto document = Json::parse(line, nullptr, false);
    if (!document.is_object() || document.value("step", 0U) != step)
      continue;
    last.values.clear();
    for (const auto& [name, value] : document.items())
      if (name != "step" && name != "training/global_step"
          && name != "training/attempt")
        last.set(name, value.is_number() ? value.get<double>() : NAN);
  }
  return last;
}

std::string metrics_line(const StepMetrics& metrics) {
  StepMetrics all = metrics;
  all.set("training/global_step", metrics.step);
  all.set("training/attempt", metrics.attempt);
  std::stable_sort(all.values.begin(), all.values.end(),
                   [](const auto& a, const auto& b) {
                     return place_in_order(a.first) < place_in_order(b.first);
                   });
  Json document = {{"step", metrics.step}};
  for (const auto& [name, value] : all.values)
    document[name] = number_json(name, value);
  return document.dump(-1, ' ', false, Json::error_handler_t::replace);
}

} // namespace troupe::runtime
