// What a person sees while a run goes on: on a terminal a progress bar with the
// time left below one line a step; otherwise plain lines.
#pragma once

#include "runtime/metrics/step_metrics.hpp"

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

namespace troupe::runtime {

/// `step 12/60 | reward 0.83 | kl 0.013 | 8.4 k tok/s | 3.1 s`: what the
/// metrics hold of loss, accuracy, reward, kl, tokens a second, seconds.
std::string step_line(const StepMetrics& metrics, std::uint32_t num_steps);

/// `evaluation after 20 steps | data/reward/mean@1 0.83 | 1.2 s`.
std::string evaluation_line(const StepMetrics& metrics);

/// `[=====>    ] 12/60  20 %  2 min 30 s left`, at most `width` columns.
std::string progress_bar(std::uint32_t done, std::uint32_t num_steps,
                         double seconds_left, int width);

/// Seconds for people: "0.31 s", "12.4 s", "2 min 05 s", "3 h 12 min".
std::string duration_text(double seconds);
/// Counts for people: "950", "8.4 k", "1.2 M".
std::string count_text(double count);
/// Bytes for people, a GB being 10^9 of them: "950 B", "8.4 kB", "1.2 GB".
std::string bytes_text(double bytes);
/// Three digits of any size without an exponent: "0.583", "13.0", "1710".
std::string three_digits(double number);
/// 1 if `fd` is a terminal that shows colours (NO_COLOR is respected).
bool shows_colours(int fd);

/// Thread-safe; writes to stdout. Quiet: only what `print` is given.
class Console {
public:
  explicit Console(bool quiet);
  ~Console(); ///< takes the bar away

  /// Begins the bar: `done` of `num_steps` are committed already.
  void start(std::uint32_t done, std::uint32_t num_steps);
  void step(const StepMetrics& metrics);
  /// A line of text above the bar, unless quiet.
  void say(std::string_view text);
  /// The same, also when quiet.
  void print(std::string_view text);
  /// Takes the bar away for good.
  void finish();
  /// Seconds to the end from the steps so far; below 0: unknown.
  double seconds_left() const;

private:
  void show_bar();
  void hide_bar();
  double seconds_left_locked() const;

  mutable std::mutex mutex_;
  bool quiet_ = false;
  bool terminal_ = false;
  bool bar_shown_ = false;
  bool running_ = false;
  std::uint32_t done_at_start_ = 0;
  std::uint32_t done_ = 0;
  std::uint32_t num_steps_ = 0;
  std::chrono::steady_clock::time_point started_;
};

} // namespace troupe::runtime
