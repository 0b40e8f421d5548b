#include "runtime/page/trace_top.hpp"

#include "runtime/base/human_text.hpp"
#include "runtime/base/text_table.hpp"
#include "runtime/trace/merged_trace.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <limits>
#include <map>
#include <set>

namespace troupe::runtime {

namespace {

using trace::Event;
using trace::Kind;

constexpr double top_window_s = 10;
constexpr std::size_t top_slowest = 5;
/// History read of each new file: minutes of a busy run.
constexpr std::uint64_t top_history_bytes = std::uint64_t{4} << 20;
constexpr std::size_t top_read_bytes = std::size_t{64} << 20;

double top_seconds(std::int64_t time_ns) {
  return static_cast<double>(time_ns) * 1e-9;
}

std::int64_t last_time(const MergedTrace& trace) {
  std::int64_t last_ns = std::numeric_limits<std::int64_t>::min();
  for (const auto& slice : trace.slices)
    last_ns = std::max(last_ns, slice.end_ns);
  for (const auto& point : trace.counters)
    last_ns = std::max(last_ns, point.time_ns);
  return last_ns;
}

/// Returns the devices; their tasks are the outermost slices on device tracks.
std::vector<TopDevice> top_devices(const MergedTrace& trace,
                                   std::int64_t from_ns, std::int64_t now_ns) {
  std::map<std::string, TopDevice> devices;
  for (const auto& slice : trace.slices) {
    const auto& track = trace.track_of(slice.where);
    if (slice.depth != 0 || slice.message
        || track.kind != trace::TrackKind::device)
      continue;
    auto& device = devices[track.name];
    device.name = track.name;
    device.process = trace.processes[slice.where.process].name;
    const auto end_ns = slice.unfinished ? now_ns : slice.end_ns;
    device.busy_share
      += std::max(0.0, top_seconds(end_ns - std::max(slice.begin_ns, from_ns)));
    if (!slice.unfinished)
      continue;
    device.task = trace.name_of(slice);
    device.step = slice.step;
    device.running_s = top_seconds(now_ns - slice.begin_ns);
  }
  std::vector<TopDevice> list;
  for (auto& [name, device] : devices) {
    device.busy_share
      = std::min(1.0, device.busy_share / top_seconds(now_ns - from_ns));
    list.push_back(std::move(device));
  }
  return list;
}

std::vector<TopQueue> top_queues(const std::vector<trace::TraceFile>& files,
                                 std::int64_t now_ns) {
  std::set<std::uint64_t> received;
  for (const auto& file : files)
    for (const auto& event : file.events)
      if (event.kind == Kind::receive)
        received.insert(event.flow);
  std::map<std::string, TopQueue> queues;
  for (const auto& file : files)
    for (const auto& event : file.events) {
      if (event.kind != Kind::send || received.contains(event.flow))
        continue;
      const auto& name = file.names[static_cast<std::size_t>(event.name)];
      auto& queue = queues[name];
      queue.message = name;
      ++queue.count;
      queue.oldest_s
        = std::max(queue.oldest_s, top_seconds(now_ns - event.time_ns));
    }
  std::vector<TopQueue> list;
  for (auto& [name, queue] : queues)
    list.push_back(std::move(queue));
  std::ranges::stable_sort(list, std::greater<>{}, &TopQueue::count);
  return list;
}

std::vector<TopMessage> top_messages(const MergedTrace& trace,
                                     std::int64_t from_ns) {
  std::vector<TopMessage> list;
  for (const auto& arrow : trace.arrows)
    if (arrow.to.time_ns >= from_ns)
      list.push_back(
        {.message = trace.name_of(arrow),
         .from = trace.track_of(arrow.from.where).name,
         .to = trace.track_of(arrow.to.where).name,
         .wait_ms = top_seconds(arrow.to.time_ns - arrow.from.time_ns) * 1e3,
         .step = arrow.step});
  std::ranges::stable_sort(list, std::greater<>{}, &TopMessage::wait_ms);
  list.resize(std::min(list.size(), top_slowest));
  return list;
}

std::string bar(double share) {
  constexpr std::size_t width = 20;
  const auto filled = static_cast<std::size_t>(share * width + 0.5);
  return std::string(filled, '#') + std::string(width - filled, '-');
}

/// Returns a task in the colour of its kind of call: those of the page
/// (web/model/colours.js), as the nearest of a terminal's 256.
std::string painted(const std::string& task, const CallKinds& kinds) {
  static const std::map<std::string, int> colours{
    {"generate", 68}, {"inference", 37}, {"train", 172}, {"function", 134}};
  constexpr int olive = 100;
  const auto kind = kinds.find(task);
  const auto found
    = kind == kinds.end() ? colours.end() : colours.find(kind->second);
  if (kinds.empty() || (found == colours.end() && task != "move"))
    return task;
  return fmt::format("\033[38;5;{}m{}\033[0m",
                     found == colours.end() ? olive : found->second, task);
}

std::string device_table(const TopView& view, const CallKinds& coloured) {
  TextTable table({"device", "process", ">busy", "", "runs"});
  for (const auto& device : view.devices)
    table.row(
      {device.name, device.process,
       fmt::format("{:.0f} %", 100 * device.busy_share), bar(device.busy_share),
       device.task.empty()
         ? "-"
         : fmt::format("{} of step {}, {}", painted(device.task, coloured),
                       device.step + 1, duration_text(device.running_s))});
  return table.print();
}

} // namespace

TopView make_top(const std::vector<trace::TraceFile>& files, double window_s) {
  TopView view;
  const auto trace = merge_traces(files);
  view.dropped_events = trace.dropped_events;
  const auto now_ns = last_time(trace);
  if (now_ns <= trace.begin_ns)
    return view;
  const auto from_ns = std::max(
    trace.begin_ns, now_ns - static_cast<std::int64_t>(window_s * 1e9));
  view.window_s = top_seconds(now_ns - from_ns);
  view.devices = top_devices(trace, from_ns, now_ns);
  view.queues = top_queues(files, now_ns);
  view.slowest = top_messages(trace, from_ns);
  return view;
}

std::string top_text(const TopView& view, const RunStatus& status,
                     const CallKinds& coloured) {
  auto text
    = fmt::format("{}, step {} of {}", status.state, status.step, status.steps);
  if (status.eta_s >= 0 && status.step < status.steps)
    text += fmt::format(", {} left", duration_text(status.eta_s));
  text += fmt::format("; the last {}\n\n", duration_text(view.window_s));
  text += device_table(view, coloured);
  text += "\nmessages under way\n";
  for (const auto& queue : view.queues)
    text += fmt::format("  {:<20} {:>6}   oldest {}\n", queue.message,
                        queue.count, duration_text(queue.oldest_s));
  if (view.queues.empty())
    text += "  none\n";
  text += "\n";
  TextTable slowest({"slowest message", "from", "to", ">waited ms", ">step"});
  for (const auto& message : view.slowest)
    slowest.row({message.message, message.from, message.to,
                 fmt::format("{:.2f}", message.wait_ms),
                 std::to_string(message.step + 1)});
  text += slowest.print();
  if (view.dropped_events > 0)
    text += fmt::format("\n{} events were dropped\n", view.dropped_events);
  return text;
}

std::string top_json(const TopView& view, const RunStatus& status) {
  using Json = nlohmann::ordered_json;
  Json devices = Json::array();
  for (const auto& device : view.devices)
    devices.push_back(
      {{"device", device.name},
       {"process", device.process},
       {"busy_share", device.busy_share},
       {"task", device.task.empty() ? Json() : Json(device.task)},
       {"step", device.step + 1},
       {"running_s", device.running_s}});
  Json queues = Json::array();
  for (const auto& queue : view.queues)
    queues.push_back({{"message", queue.message},
                      {"count", queue.count},
                      {"oldest_s", queue.oldest_s}});
  Json slowest = Json::array();
  for (const auto& message : view.slowest)
    slowest.push_back({{"message", message.message},
                       {"from", message.from},
                       {"to", message.to},
                       {"wait_ms", message.wait_ms},
                       {"step", message.step + 1}});
  return Json{{"state", status.state}, {"step", status.step},
              {"steps", status.steps}, {"window_s", view.window_s},
              {"devices", devices},    {"queues", queues},
              {"slowest", slowest},    {"dropped_events", view.dropped_events}}
    .dump(2, ' ', false, Json::error_handler_t::replace);
}

TraceTop::TraceTop(const RunFolder& folder)
  : follower_(folder, top_history_bytes) {}

TopView TraceTop::look() {
  for (auto& name : follower_.find_files()) {
    names_.push_back(std::move(name));
    files_.emplace_back();
  }
  for (const auto& chunk : follower_.read(top_read_bytes))
    trace::append_trace(files_[chunk.file], chunk.bytes, names_[chunk.file]);
  for (auto& file : files_)
    if (!file.events.empty())
      forget_before(file,
                    file.events.back().time_ns
                      - static_cast<std::int64_t>(2 * top_window_s * 1e9));
  return make_top(files_, top_window_s);
}

void forget_before(trace::TraceFile& file, std::int64_t time_ns) {
  std::vector<Event> kept;
  std::map<std::pair<trace::Track, trace::Name>, std::vector<Event>> open;
  for (const auto& event : file.events) {
    if (event.time_ns >= time_ns)
      break;
    auto& begun = open[{event.track, event.name}];
    if (event.kind == Kind::begin)
      begun.push_back(event);
    else if (event.kind == Kind::end && !begun.empty())
      begun.pop_back();
  }
  for (auto& [where, begun] : open)
    kept.insert(kept.end(), begun.begin(), begun.end());
  std::ranges::stable_sort(kept, {}, &Event::time_ns);
  for (const auto& event : file.events)
    if (event.time_ns >= time_ns)
      kept.push_back(event);
  file.events = std::move(kept);
}

} // namespace troupe::runtime
