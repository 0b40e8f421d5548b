#include "plans/simulate/timeline.hpp"

#include "plans/simulate/memory_curve.hpp"
#include "plans/simulate/timeline_rows.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

namespace troupe::plans {

namespace {

using internal::highest_peak;
using internal::last_step;
using internal::timeline_rows;
using internal::TimelineRow;
using internal::TimelineWindow;
using internal::use_of;

/// Returns one digit per column: tenths of the highest peak.
std::string memory_line(const Simulation& run, const TimelineRow& row,
                        const TimelineWindow& window, std::uint32_t columns) {
  const auto& curve = use_of(run, row).memory;
  const auto width_s = window.width_s() / columns;
  std::string line;
  for (std::uint32_t i = 0; i < columns; ++i) {
    const auto begin_s = window.begin_s + i * width_s;
    const auto share = double(most_bytes(curve, begin_s, begin_s + width_s))
                       / highest_peak(run);
    line += static_cast<char>('0' + std::min(9, int(10 * share)));
  }
  return line;
}

char task_letter(std::uint32_t task) {
  static const char letters[]
    = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
  return letters[task % (std::size(letters) - 1)];
}

} // namespace

std::string ascii_timeline(const Simulation& run, std::uint32_t columns) {
  const auto window = last_step(run);
  std::string text;
  for (const auto& row : timeline_rows(run)) {
    std::string line(columns, '.');
    for (const auto& times : row.times) {
      const auto place = [&](double seconds) {
        const auto share = (seconds - window.begin_s) / window.width_s();
        return static_cast<std::int64_t>(
          std::lround(std::clamp(share, 0.0, 1.0) * columns));
      };
      for (auto i = place(times.start_s); i < place(times.end_s); ++i)
        line[static_cast<std::size_t>(i)] = task_letter(times.task.task);
    }
    text
      += fmt::format("{:>12} |{}|\n{:>12} |{}|\n", print_devices(row.devices),
                     line, "memory", memory_line(run, row, window, columns));
  }
  text += fmt::format("{:>12} digits are tenths of {:.3g} GB\n", "memory",
                      highest_peak(run) / 1e9);
  for (std::uint32_t i = 0; i < run.graph.tasks.size(); ++i)
    if (!run.graph.tasks[i].devices.empty())
      text += fmt::format("{:>12} {} {:.4g} s\n", task_letter(i),
                          run.graph.tasks[i].name, run.durations_s[i]);
  return text;
}

std::string chrome_timeline(const Simulation& run) {
  using Json = nlohmann::ordered_json;
  auto events = Json::array();
  std::uint32_t number = 0;
  for (const auto& row : timeline_rows(run)) {
    events.push_back(
      {{"name", "thread_name"},
       {"ph", "M"},
       {"pid", 1},
       {"tid", number},
       {"args", {{"name", "devices " + print_devices(row.devices)}}}});
    for (const auto& times : row.times)
      events.push_back({{"name", run.graph.tasks[times.task.task].name},
                        {"ph", "X"},
                        {"pid", 1},
                        {"tid", number},
                        {"ts", times.start_s * 1e6},
                        {"dur", (times.end_s - times.start_s) * 1e6},
                        {"args", {{"step", times.task.step.value}}}});
    ++number;
  }
  return Json{{"traceEvents", std::move(events)}}.dump();
}

} // namespace troupe::plans
