#include "runtime/metrics/run_summary.hpp"

#include "runtime/base/human_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace troupe::runtime {

namespace {

struct SummaryLine {
  const char* metric;
  const char* text;
};

constexpr std::array summary_phases{
  SummaryLine{"gen", "generate"},
  SummaryLine{"reward", "reward"},
  SummaryLine{"ref", "reference log-probs"},
  SummaryLine{"values", "critic values"},
  SummaryLine{"old_log_prob", "old log-probs"},
  SummaryLine{"adv", "advantages"},
  SummaryLine{"update_critic", "train critic"},
  SummaryLine{"update_actor", "train actor"},
  SummaryLine{"move", "move weights"},
  SummaryLine{"testing", "evaluate"},
  SummaryLine{"save_checkpoint", "save checkpoint"},
  SummaryLine{"snapshot", "snapshot in memory"},
};

constexpr std::array summary_headlines{
  SummaryLine{"train/loss", "loss"},
  SummaryLine{"train/accuracy", "accuracy"},
  SummaryLine{"critic/score/mean", "reward"},
  SummaryLine{"actor/reward_kl_penalty", "kl to reference"},
  SummaryLine{"response_length/mean", "response tokens"},
};

constexpr std::string_view timing_prefix = "timing_s/";

const char* phase_text(const std::string& phase) {
  for (const auto& known : summary_phases)
    if (phase == known.metric)
      return known.text;
  return phase.c_str();
}

double mean_of(const double* first, std::size_t count) {
  return std::accumulate(first, first + count, 0.0)
         / static_cast<double>(count);
}

/// Returns 0 for a value that would print as -0.000.
double unsigned_zero(double value) {
  return std::fabs(value) < 0.0005 ? 0.0 : value;
}

} // namespace

void RunSummary::add(const StepMetrics& metrics) {
  ++num_steps_;
  steps_s_ += metrics.find("timing_s/step").value_or(0);
  tokens_ += metrics.find("perf/total_num_tokens").value_or(0);
  for (const auto& [name, seconds] : metrics.values) {
    if (!name.starts_with(timing_prefix) || name == "timing_s/step")
      continue;
    add_phase(name.substr(timing_prefix.size()), seconds);
  }
  for (const auto& headline : summary_headlines) {
    const auto value = metrics.find(headline.metric);
    if (!value)
      continue;
    auto known
      = std::find_if(series_.begin(), series_.end(), [&](const Series& series) {
          return series.name == headline.text;
        });
    if (known == series_.end())
      known = series_.insert(series_.end(), {headline.text, {}});
    known->values.push_back(*value);
  }
}

void RunSummary::add_phase(const std::string& phase, double seconds) {
  const auto known
    = std::find_if(phases_s_.begin(), phases_s_.end(),
                   [&](const auto& entry) { return entry.first == phase; });
  if (known == phases_s_.end())
    phases_s_.emplace_back(phase, seconds);
  else
    known->second += seconds;
}

void RunSummary::set_device(const std::string& name, double busy_s,
                            const std::string& memory) {
  std::erase_if(devices_,
                [&](const Device& device) { return device.name == name; });
  devices_.push_back({name, busy_s, memory});
}

std::string RunSummary::print() const {
  std::string text
    = fmt::format("{} {} in {}", num_steps_, num_steps_ == 1 ? "step" : "steps",
                  duration_text(wall_s_ > 0 ? wall_s_ : steps_s_));
  if (tokens_ > 0 && steps_s_ > 0)
    text += fmt::format(", {} tokens, {} tok/s", count_text(tokens_),
                        count_text(tokens_ / steps_s_));
  text += "\n";
  text += progress_lines();
  text += phase_table();
  text += device_lines();
  if (!checkpoint_.empty())
    text += fmt::format("  checkpoint  {}\n", checkpoint_.string());
  if (!trace_.empty())
    text += fmt::format("  trace       {}\n", trace_.string());
  return text;
}

std::string RunSummary::progress_lines() const {
  std::string text;
  for (const auto& series : series_) {
    // a fifth of the run at each end, so that a single lucky batch has little
    // weight
    const auto& values = series.values;
    const std::size_t count = std::clamp<std::size_t>(values.size() / 5, 1, 10);
    const double first = unsigned_zero(mean_of(values.data(), count));
    const double last
      = unsigned_zero(mean_of(&values[values.size() - count], count));
    text += fmt::format("  {:<21} {:.3f} -> {:.3f}   (mean of the first and "
                        "the last {})\n",
                        series.name, first, last,
                        count == 1 ? "step" : fmt::format("{} steps", count));
  }
  return text;
}

std::string RunSummary::phase_table() const {
  if (phases_s_.empty() || steps_s_ <= 0)
    return "";
  std::string text = fmt::format("  {:<21} {:>9} {:>7}\n",
                                 "where the time went", "seconds", "share");
  const auto line = [&](const char* name, double seconds) {
    text += fmt::format("  {:<21} {:>9.2f} {:>5.0f} %\n", name, seconds,
                        100 * seconds / steps_s_);
  };
  double listed_s = 0;
  auto phases_s = phases_s_;
  const auto place = [](const std::string& phase) {
    return std::find_if(
      summary_phases.begin(), summary_phases.end(),
      [&](const SummaryLine& p) { return phase == p.metric; });
  };
  std::stable_sort(phases_s.begin(), phases_s.end(),
                   [&](const auto& a, const auto& b) {
                     return place(a.first) < place(b.first);
                   });
  const bool one_model
    = std::none_of(phases_s.begin(), phases_s.end(), [](const auto& entry) {
        return entry.first == "gen" || entry.first == "update_critic";
      });
  for (const auto& [phase, seconds] : phases_s) {
    const bool only_training = one_model && phase == "update_actor";
    if (seconds > 0)
      line(only_training ? "train" : phase_text(phase), seconds);
    listed_s += seconds;
  }
  if (listed_s < steps_s_)
    line("waiting and messages", steps_s_ - listed_s);
  line("all steps", steps_s_);
  if (listed_s > steps_s_)
    text += "  (calls that ran at the same time count twice)\n";
  return text;
}

std::string RunSummary::device_lines() const {
  std::string text;
  for (const auto& device : devices_) {
    const double idle
      = steps_s_ > 0 ? std::clamp(1 - device.busy_s / steps_s_, 0.0, 1.0) : 0;
    text += fmt::format("  {:<21} idle {:.0f} %{}{}\n", device.name, 100 * idle,
                        device.memory.empty() ? "" : ", ", device.memory);
  }
  return text;
}

} // namespace troupe::runtime
