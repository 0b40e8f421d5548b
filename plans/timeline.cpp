#include "plans/timeline.hpp"

#include "plans/memory_curve.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

namespace troupe::plans {

namespace {

/// Devices that run the same tasks share a row.
struct TimelineRow {
  std::vector<Rank> devices;
  std::vector<TaskTimes> times;
};

struct Window {
  double begin_s = 0;
  double end_s = 0;
  double width_s() const {
    return std::max(end_s - begin_s, 1e-12);
  }
};

/// From where the last step's first task starts to its end.
Window last_step(const Simulation& run) {
  Window window{.begin_s = 1e300};
  for (const auto& times : run.times)
    if (times.task.step.value + 1 == run.num_steps) {
      window.begin_s = std::min(window.begin_s, times.start_s);
      window.end_s = std::max(window.end_s, times.end_s);
    }
  if (window.begin_s > window.end_s)
    window.begin_s = window.end_s;
  return window;
}

std::vector<TimelineRow> timeline_rows(const Simulation& run) {
  std::map<Rank, std::vector<TaskTimes>> of_device;
  for (const auto& times : run.times)
    for (const auto rank : run.graph.tasks[times.task.task].devices)
      of_device[rank].push_back(times);
  std::vector<TimelineRow> rows;
  for (auto& [rank, times] : of_device) {
    const auto same = [&](const TimelineRow& row) {
      return std::ranges::equal(row.times, times, {}, &TaskTimes::task,
                                &TaskTimes::task);
    };
    const auto found = std::ranges::find_if(rows, same);
    if (found == rows.end())
      rows.push_back({{rank}, std::move(times)});
    else
      found->devices.push_back(rank);
  }
  return rows;
}

/// What the first of a row's devices holds.
const std::vector<MemoryPoint>& memory_of(const Simulation& run,
                                          const TimelineRow& row) {
  return std::ranges::find(run.devices, row.devices.front(), &DeviceUse::device)
    ->memory;
}

double highest_peak(const Simulation& run) {
  std::uint64_t most = 1;
  for (const auto& device : run.devices)
    most = std::max(most, device.peak_bytes);
  return double(most);
}

/// A digit a column: tenths of the highest peak.
std::string memory_line(const Simulation& run, const TimelineRow& row,
                        const Window& window, std::uint32_t columns) {
  const auto& curve = memory_of(run, row);
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

/// A line in a row of the picture that ends at `bottom`: the highest peak is
/// `height` above it.
std::string memory_path(const Simulation& run, const TimelineRow& row,
                        double left, double width, double bottom,
                        double height) {
  const auto window = last_step(run);
  const auto& curve = memory_of(run, row);
  auto path = fmt::format("M {:.1f} {:.1f}", left, bottom);
  for (std::size_t i = 0; i < curve.size(); ++i) {
    const auto ends_s = i + 1 < curve.size() ? curve[i + 1].at_s : window.end_s;
    if (curve[i].at_s >= window.end_s || ends_s <= window.begin_s)
      continue;
    const auto share
      = std::max(0.0, curve[i].at_s - window.begin_s) / window.width_s();
    path += fmt::format(
      " H {:.1f} V {:.1f}", left + width * share,
      bottom - height * double(curve[i].bytes) / highest_peak(run));
  }
  return fmt::format("{} H {:.1f}", path, left + width);
}

const char* task_colour(std::uint32_t task) {
  static const char* colours[]
    = {"#4e79a7", "#f28e2b", "#e15759", "#76b7b2", "#59a14f",
       "#edc948", "#b07aa1", "#ff9da7", "#9c755f", "#bab0ac"};
  return colours[task % std::size(colours)];
}

char task_letter(std::uint32_t task) {
  static const char letters[]
    = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
  return letters[task % (std::size(letters) - 1)];
}

std::string escaped(const std::string& text) {
  std::string safe;
  for (const char letter : text)
    if (letter == '<')
      safe += "&lt;";
    else if (letter == '&')
      safe += "&amp;";
    else
      safe += letter;
  return safe;
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

std::string svg_timeline(const Simulation& run) {
  constexpr double width = 960, row_height = 28, left = 120, top = 24;
  const auto window = last_step(run);
  const auto rows = timeline_rows(run);
  const auto height = top + row_height * double(rows.size()) + 40;
  auto svg = fmt::format(
    "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" "
    "font-family=\"sans-serif\" font-size=\"11\">\n<text x=\"4\" "
    "y=\"14\">predicted step {:.4g} s, idle {:.0f} %</text>\n",
    left + width + 20, height, run.step_s, 100 * run.idle_share);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto y = top + row_height * double(i);
    svg += fmt::format("<text x=\"4\" y=\"{:.0f}\">{}</text>\n", y + 18,
                       print_devices(rows[i].devices));
    for (const auto& times : rows[i].times) {
      const auto begin = std::max(times.start_s, window.begin_s);
      const auto end = std::min(times.end_s, window.end_s);
      if (end <= begin)
        continue;
      const auto& name = run.graph.tasks[times.task.task].name;
      const auto x = left + width * (begin - window.begin_s) / window.width_s();
      const auto size = width * (end - begin) / window.width_s();
      svg += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" "
        "fill=\"{}\"><title>{} step {}: {:.4g} s</title></rect>\n",
        x, y + 2, std::max(size, 0.5), row_height - 4,
        task_colour(times.task.task), escaped(name), times.task.step.value,
        times.end_s - times.start_s);
      if (size > 7.0 * double(name.size()))
        svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", x + 3,
                           y + 18, escaped(name));
    }
    svg += fmt::format(
      "<path d=\"{}\" fill=\"none\" stroke=\"#222\"><title>memory, up to "
      "{:.3g} GB</title></path>\n",
      memory_path(run, rows[i], left, width, y + row_height - 2,
                  row_height - 4),
      highest_peak(run) / 1e9);
  }
  return svg + "</svg>\n";
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
