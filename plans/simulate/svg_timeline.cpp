// Draws a step: bars of tasks with an axis of seconds, the memory of each group
// of devices below its bars, a legend. Colours are those of a run's page, light
// or dark to match the viewer's setting.
#include "plans/simulate/timeline.hpp"
#include "plans/simulate/timeline_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <set>
#include <vector>

namespace troupe::plans {

namespace {

using internal::highest_peak;
using internal::last_step;
using internal::timeline_rows;
using internal::TimelineRow;
using internal::TimelineWindow;
using internal::use_of;

constexpr double svg_left = 150, svg_width = 900, svg_right = 30;
constexpr double svg_top = 34, svg_bar = 22, svg_memory = 22;
constexpr double svg_row = svg_bar + svg_memory + 16;
constexpr double svg_axis = 30, svg_legend_line = 18;
constexpr std::size_t legend_columns = 4;

/// Returns "#rrggbb" for a colour in oklch, whose lightness looks the same in
/// every hue.
std::string colour_of(double lightness, double chroma, double hue_degrees) {
  const auto hue = hue_degrees * std::numbers::pi / 180;
  const auto a = chroma * std::cos(hue), b = chroma * std::sin(hue);
  const auto cube = [](double root) { return root * root * root; };
  const auto l = cube(lightness + 0.3963377774 * a + 0.2158037573 * b);
  const auto m = cube(lightness - 0.1055613458 * a - 0.0638541728 * b);
  const auto s = cube(lightness - 0.0894841775 * a - 1.2914855480 * b);
  const std::array linear
    = {4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
       -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
       -0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s};
  std::string text = "#";
  for (const auto part : linear) {
    const auto light = std::clamp(part, 0.0, 1.0);
    const auto shown = light <= 0.0031308
                         ? 12.92 * light
                         : 1.055 * std::pow(light, 1 / 2.4) - 0.055;
    text += fmt::format("{:02x}", std::lround(255 * shown));
  }
  return text;
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

/// Returns 1, 2 or 5 times a power of ten, with at most ten ticks in `seconds`.
double tick_of(double seconds) {
  const auto power = std::pow(10.0, std::floor(std::log10(seconds / 10)));
  for (const auto step : {1.0, 2.0, 5.0})
    if (seconds / (step * power) <= 10)
      return step * power;
  return 10 * power;
}

class SvgTimeline {
public:
  explicit SvgTimeline(const Simulation& run)
    : run_(run),
      window_(last_step(run)),
      rows_(timeline_rows(run)) {}

  std::string print() {
    for (const auto& row : rows_)
      add_row(row);
    add_axis();
    add_legend();
    const auto height
      = bottom() + svg_axis
        + svg_legend_line
            * std::ceil(double(shown_.size()) / double(legend_columns))
        + 10;
    return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" "
      "height=\"{1}\" viewBox=\"0 0 {0} {1}\" font-family=\"system-ui, "
      "sans-serif\" font-size=\"11\">\n{2}<rect class=\"back\" "
      "width=\"{0}\" height=\"{1}\"/>\n<text x=\"8\" y=\"18\" "
      "font-size=\"13\">predicted step {3:.4g} s, idle {4:.0f} %</text>\n"
      "{5}</svg>\n",
      svg_left + svg_width + svg_right, height, style(), run_.step_s,
      100 * run_.idle_share, body_);
  }

private:
  double bottom() const {
    return svg_top + svg_row * double(rows_.size());
  }
  double x_of(double seconds) const {
    return svg_left
           + svg_width * (seconds - window_.begin_s) / window_.width_s();
  }

  void add_text(double x, double y, const std::string& words,
                const char* more = "") {
    body_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\"{}>{}</text>\n", x, y,
                         more, escaped(words));
  }

  void add_row(const TimelineRow& row) {
    auto devices = print_devices(row.devices);
    constexpr std::size_t room = 20;
    if (devices.size() > room)
      devices.replace(room - 2, std::string::npos, "..");
    const auto y = svg_top + svg_row * double(&row - rows_.data());
    add_text(8, y + 15,
             (row.devices.size() == 1 ? "device " : "devices ") + devices);
    for (const auto& times : row.times)
      add_bar(times, y);
    add_memory(row, y + svg_bar + 4);
  }

  void add_bar(const TaskTimes& times, double y) {
    const auto begin = std::max(times.start_s, window_.begin_s);
    const auto end = std::min(times.end_s, window_.end_s);
    if (end <= begin)
      return;
    const auto task = times.task.task;
    shown_.insert(task);
    const auto& name = run_.graph.tasks[task].name;
    const auto size = x_of(end) - x_of(begin);
    body_ += fmt::format(
      "<rect class=\"task t{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" "
      "height=\"{:.1f}\"><title>{} step {}: {:.4g} s</title></rect>\n",
      task, x_of(begin), y, std::max(size, 1.5), svg_bar, escaped(name),
      times.task.step.value, times.end_s - times.start_s);
    if (size > 6.5 * double(name.size()) + 8)
      add_text(x_of(begin) + 4, y + 15, name);
  }

  /// Draws bytes over time: the highest peak of all devices is the full height.
  void add_memory(const TimelineRow& row, double top) {
    const auto& use = use_of(run_, row);
    const auto base = top + svg_memory;
    auto path = fmt::format("M {:.1f} {:.1f}", svg_left, base);
    for (std::size_t i = 0; i < use.memory.size(); ++i) {
      const auto& point = use.memory[i];
      const auto ends_s
        = i + 1 < use.memory.size() ? use.memory[i + 1].at_s : window_.end_s;
      if (point.at_s >= window_.end_s || ends_s <= window_.begin_s)
        continue;
      path += fmt::format(
        " H {:.1f} V {:.1f}", x_of(std::max(point.at_s, window_.begin_s)),
        base - svg_memory * double(point.bytes) / highest_peak(run_));
    }
    const auto peak = fmt::format("{:.3g} GB", double(use.peak_bytes) / 1e9);
    body_ += fmt::format("<path d=\"{} H {:.1f} V {:.1f} Z\" class=\"memory\">"
                         "<title>memory, at most {}</title></path>\n",
                         path, svg_left + svg_width, base, peak);
    add_text(8, base - 7, "memory, peak " + peak, " class=\"quiet\"");
  }

  void add_axis() {
    const auto y = bottom();
    body_
      += fmt::format("<path class=\"axis\" d=\"M {:.1f} {:.1f} H {:.1f}\"/>\n",
                     svg_left, y, svg_left + svg_width);
    const auto tick = tick_of(window_.width_s());
    const auto digits
      = std::max(0, static_cast<int>(std::ceil(-std::log10(tick) - 1e-9)));
    for (int i = 0; i * tick <= window_.width_s() * (1 + 1e-9); ++i) {
      const auto x = x_of(window_.begin_s + i * tick);
      body_ += fmt::format(
        "<path class=\"axis\" d=\"M {:.1f} {:.1f} V {:.1f}\"/>\n", x, y, y + 5);
      add_text(x, y + 17, fmt::format("{:.{}f} s", i * tick, digits),
               " class=\"quiet\" text-anchor=\"middle\"");
    }
  }

  /// Lists every task in the picture, also those too short for a name in their
  /// bar.
  void add_legend() {
    std::size_t number = 0;
    for (const auto task : shown_) {
      const auto x = 8
                     + (svg_left + svg_width) / double(legend_columns)
                         * double(number % legend_columns);
      const auto y = bottom() + svg_axis
                     + svg_legend_line * double(number / legend_columns);
      body_ += fmt::format("<rect class=\"key t{}\" x=\"{:.1f}\" y=\"{:.1f}\" "
                           "width=\"11\" height=\"11\"/>\n",
                           task, x, y);
      add_text(x + 16, y + 10,
               fmt::format("{} {:.3g} s", run_.graph.tasks[task].name,
                           run_.durations_s[task]));
      ++number;
    }
  }

  /// Returns the page's colours (page.css, 30_timeline.js).
  std::string style() const {
    const auto tasks = [&](double lightness) {
      std::string rules;
      std::size_t number = 0; // distant hues, as on the page
      for (const auto task : shown_)
        rules += fmt::format(
          ".t{}{{fill:{}}}", task,
          colour_of(lightness, 0.1, std::fmod(137.5 * double(number++), 360)));
      return rules;
    };
    return fmt::format(
      "<style>text{{fill:#1c2024}}.quiet{{fill:#60676c}}.back{{fill:#ffffff}}"
      ".axis{{stroke:#60676c;fill:none}}.memory{{fill:#0b68cb;fill-opacity:.12;"
      "stroke:#0b68cb}}{}\n@media (prefers-color-scheme:dark){{"
      "text{{fill:#ecedee}}.quiet{{fill:#9ba1a6}}.back{{fill:#151718}}"
      ".axis{{stroke:#9ba1a6}}.memory{{fill:#52a9ff;stroke:#52a9ff}}{}}}"
      "</style>\n",
      tasks(0.80), tasks(0.48));
  }

  const Simulation& run_;
  TimelineWindow window_;
  std::vector<TimelineRow> rows_;
  std::set<std::uint32_t> shown_; ///< tasks
  std::string body_;
};

} // namespace

std::string svg_timeline(const Simulation& run) {
  return SvgTimeline(run).print();
}

} // namespace troupe::plans
