// Console output of a run: on a terminal one line per step above a progress bar
// with the time left; otherwise plain lines.
#pragma once

#include "config/base/clock.hpp"
#include "config/base/console_output.hpp"
#include "runtime/base/human_text.hpp"
#include "runtime/metrics/step_metrics.hpp"

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

namespace troupe::runtime {

/// Returns `step 12/60 | reward 0.83 | kl 0.013 | 8.4 k tok/s | 3.1 s`: what
/// the metrics have of loss, accuracy, reward, kl, tokens per second, seconds.
std::string step_line(const StepMetrics& metrics, std::uint32_t num_steps);

/// Returns `evaluation after 20 steps | data/reward/mean@1 0.83 | 1.2 s`.
std::string evaluation_line(const StepMetrics& metrics);

/// Returns `[=====>    ] 12/60  20 %  2 min 30 s left`, at most `width`
/// columns.
std::string progress_bar(std::uint32_t done, std::uint32_t num_steps,
                         double seconds_left, int width);

/// Writes to stdout, without waiting for its reader. Thread-safe. Quiet: only
/// what `print` gets.
class Console {
public:
  explicit Console(bool quiet);
  ~Console(); ///< removes the bar

  /// Shows the bar: `done` of `num_steps` are committed already.
  void start(std::uint32_t done, std::uint32_t num_steps);
  void step(const StepMetrics& metrics);
  /// Writes a line of text above the bar, unless quiet.
  void say(std::string_view text);
  /// Writes a line of text above the bar, also when quiet.
  void print(std::string_view text);
  /// Removes the bar permanently.
  void finish();
  /// Returns the seconds to the end, estimated from the steps so far; below 0:
  /// unknown.
  double seconds_left() const;

private:
  void show_bar();
  void hide_bar();
  double seconds_left_locked() const;

  mutable std::mutex mutex_;
  ConsoleOutput output_;
  bool quiet_ = false;
  bool terminal_ = false;
  bool bar_shown_ = false;
  bool running_ = false;
  std::uint32_t done_at_start_ = 0;
  std::uint32_t done_ = 0;
  std::uint32_t num_steps_ = 0;
  Stopwatch watch_; ///< since the first step
};

} // namespace troupe::runtime
