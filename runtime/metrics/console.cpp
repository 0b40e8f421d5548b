#include "runtime/metrics/console.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <ranges>
#include <string>

namespace troupe::runtime {

namespace {

constexpr int narrow_terminal_columns = 80; // if the terminal does not report
                                            // its width

int terminal_columns() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    return size.ws_col;
  return narrow_terminal_columns;
}

/// Formats three significant digits, never in powers of ten for everyday sizes.
std::string short_number(double value) {
  const double size = std::fabs(value);
  if (size != 0 && size < 0.001)
    return fmt::format("{:.1e}", value);
  if (size < 0.1)
    return fmt::format("{:.4f}", value);
  if (size < 10)
    return fmt::format("{:.3f}", value);
  return fmt::format("{:.1f}", value);
}

/// Returns tokens per second of the whole run, not per device.
std::optional<double> tokens_per_second(const StepMetrics& metrics) {
  const auto tokens = metrics.find("perf/total_num_tokens");
  const auto seconds = metrics.find("timing_s/step");
  if (!tokens || !seconds || *seconds <= 0)
    return std::nullopt;
  return *tokens / *seconds;
}

} // namespace

std::string step_line(const StepMetrics& metrics, std::uint32_t num_steps) {
  std::string line = fmt::format("step {}/{}", metrics.step, num_steps);
  const auto add = [&](const char* label, const char* name) {
    const auto value = metrics.find(name);
    if (value)
      line += fmt::format(" | {} {}", label, short_number(*value));
    return value.has_value();
  };
  add("loss", "train/loss");
  add("accuracy", "train/accuracy");
  add("reward", "critic/score/mean");
  if (!add("kl", "actor/reward_kl_penalty") && !add("kl", "actor/kl_loss"))
    add("kl", "actor/ppo_kl");
  for (const auto& name : metrics.user | std::views::take(2)) // room for few
    add(name.c_str(), name.c_str());
  if (const auto speed = tokens_per_second(metrics))
    line += fmt::format(" | {} tok/s", count_text(*speed));
  if (const auto seconds = metrics.find("timing_s/step"))
    line += fmt::format(" | {}", duration_text(*seconds));
  return line;
}

std::string evaluation_line(const StepMetrics& metrics) {
  constexpr std::string_view prefix = "val-core/";
  std::string line = fmt::format("evaluation after {} {}", metrics.step,
                                 metrics.step == 1 ? "step" : "steps");
  for (const auto& [name, value] : metrics.values)
    if (name.starts_with(prefix))
      line += fmt::format(" | {} {}", name.substr(prefix.size()),
                          short_number(value));
  if (const auto seconds = metrics.find("timing_s/testing"))
    line += fmt::format(" | {}", duration_text(*seconds));
  return line;
}

std::string progress_bar(std::uint32_t done, std::uint32_t num_steps,
                         double seconds_left, int width) {
  const double share
    = num_steps == 0 ? 1.0 : static_cast<double>(done) / num_steps;
  std::string tail
    = fmt::format(" {}/{}  {:.0f} %", done, num_steps, share * 100);
  if (seconds_left >= 0 && done < num_steps)
    tail += fmt::format("  {} left", duration_text(seconds_left));
  const int room = std::clamp(width - static_cast<int>(tail.size()) - 3, 0, 40);
  const int filled = static_cast<int>(std::lround(share * room));
  std::string bar(static_cast<std::size_t>(filled), '=');
  if (filled > 0 && filled < room)
    bar.back() = '>';
  bar.append(static_cast<std::size_t>(room - filled), ' ');
  return room > 0 ? "[" + bar + "]" + tail : tail.substr(1);
}

Console::Console(bool quiet)
  : output_(STDOUT_FILENO),
    quiet_(quiet),
    terminal_(::isatty(STDOUT_FILENO) == 1) {}

Console::~Console() {
  finish();
}

void Console::start(std::uint32_t done, std::uint32_t num_steps) {
  const std::lock_guard lock(mutex_);
  done_at_start_ = done_ = done;
  num_steps_ = num_steps;
  watch_ = {};
  running_ = true;
  show_bar();
}

void Console::step(const StepMetrics& metrics) {
  const std::lock_guard lock(mutex_);
  done_ = metrics.step;
  if (quiet_)
    return;
  hide_bar();
  output_.write(step_line(metrics, num_steps_) + "\n");
  show_bar();
}

void Console::say(std::string_view text) {
  if (!quiet_)
    print(text);
}

void Console::print(std::string_view text) {
  const std::lock_guard lock(mutex_);
  hide_bar();
  output_.write(std::string(text) + (text.ends_with('\n') ? "" : "\n"));
  show_bar();
}

void Console::finish() {
  const std::lock_guard lock(mutex_);
  hide_bar();
  running_ = false;
}

double Console::seconds_left() const {
  const std::lock_guard lock(mutex_);
  return seconds_left_locked();
}

double Console::seconds_left_locked() const {
  if (done_ <= done_at_start_)
    return -1;
  return watch_.seconds() / (done_ - done_at_start_)
         * (std::max(num_steps_, done_) - done_);
}

void Console::show_bar() {
  if (!running_ || !terminal_ || quiet_)
    return;
  output_.write("\r"
                + progress_bar(done_, num_steps_, seconds_left_locked(),
                               terminal_columns() - 1));
  bar_shown_ = true;
}

void Console::hide_bar() {
  if (bar_shown_)
    output_.write("\r\033[K"); // to the line's start, erase to its end
  bar_shown_ = false;
}

} // namespace troupe::runtime
