#include "runtime/trace/trace_summary.hpp"

#include "runtime/base/human_text.hpp"
#include "runtime/trace/trace_bytes.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <functional>
#include <limits>
#include <set>

namespace troupe::runtime {

using Json = nlohmann::ordered_json;

namespace {

constexpr std::size_t links_shown = 4;

double seconds(std::int64_t time_ns) {
  return static_cast<double>(time_ns) * 1e-9;
}

bool is_evaluation(const std::string& task) {
  return task.starts_with("eval_");
}

/// Returns tasks: outermost slices on the tracks of devices and of threads
/// beside them, in steps that are complete.
std::vector<const Slice*> device_tasks(const MergedTrace& trace) {
  std::vector<const Slice*> tasks;
  for (const auto& slice : trace.slices)
    if (slice.depth == 0 && !slice.message
        && slice.step >= trace.missing.whole_from
        && trace.track_of(slice.where).kind == trace::TrackKind::device)
      tasks.push_back(&slice);
  return tasks;
}

/// Returns whether a track is a writer's. Files of a checkpoint are written
/// while later steps run, so their end does not belong to a step.
bool is_of_a_writer(const trace::TrackInfo& track) {
  return track.name.starts_with("writer ");
}

struct Window {
  std::int64_t begin_ns = std::numeric_limits<std::int64_t>::max();
  std::int64_t end_ns = std::numeric_limits<std::int64_t>::min();

  void cover(const Slice& slice) {
    begin_ns = std::min(begin_ns, slice.begin_ns);
    end_ns = std::max(end_ns, slice.end_ns);
  }
};

/// Returns each process's attempt: how many earlier files have the same number.
/// The time between attempts is not idle time.
std::vector<std::uint32_t> attempts_of(const MergedTrace& trace) {
  std::vector<std::uint32_t> attempts;
  std::map<std::uint32_t, std::uint32_t> seen;
  for (const auto& process : trace.processes)
    attempts.push_back(seen[process.number]++);
  return attempts;
}

void sum_idle(const MergedTrace& trace, const std::vector<const Slice*>& tasks,
              TraceSummary& summary) {
  const BytesUnderWay bytes(trace);
  const auto attempts = attempts_of(trace);
  std::map<std::uint32_t, Window> windows;
  std::map<TrackRef, std::vector<const Slice*>> by_device;
  for (const auto* task : tasks) {
    if (is_device(trace.track_of(task->where)))
      by_device[task->where].push_back(task);
    windows[attempts[task->where.process]].cover(*task);
  }
  std::map<std::string, std::int64_t> busy_ns;
  for (const auto& [device, own] : by_device) {
    const auto& window = windows[attempts[device.process]];
    std::int64_t free_from_ns = window.begin_ns;
    const auto idle_until = [&](std::int64_t time_ns, const Slice* next) {
      if (time_ns <= free_from_ns)
        return;
      const auto moving_ns = bytes.covered_ns(device, free_from_ns, time_ns);
      summary.idle_s["bytes"] += seconds(moving_ns);
      summary.idle_s["dependency"]
        += seconds(time_ns - free_from_ns - moving_ns);
      if (next != nullptr)
        summary.tasks[trace.name_of(*next)].wait_s
          += seconds(time_ns - free_from_ns);
    };
    for (const auto* task : own) {
      idle_until(task->begin_ns, task);
      busy_ns[trace.track_of(device).name] += task->end_ns - task->begin_ns;
      free_from_ns = std::max(free_from_ns, task->end_ns);
    }
    idle_until(window.end_ns, nullptr);
  }
  if (busy_ns.empty())
    return;
  const auto busiest = std::max_element(
    busy_ns.begin(), busy_ns.end(),
    [](const auto& a, const auto& b) { return a.second < b.second; });
  summary.slowest_device = busiest->first;
}

double median(std::vector<double> values) {
  const auto middle
    = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Measures the median time from one step's last task to the next one's; the
/// first step of an attempt counts from its own first task.
void measure_steps(const MergedTrace& trace,
                   const std::vector<const Slice*>& tasks,
                   TraceSummary& summary) {
  const auto attempts = attempts_of(trace);
  std::map<std::uint32_t, std::map<std::uint32_t, Window>> steps;
  std::map<std::string,
           std::map<std::pair<std::uint32_t, std::uint32_t>, Window>>
    named;
  for (const auto* task : tasks) {
    const auto attempt = attempts[task->where.process];
    if (!is_of_a_writer(trace.track_of(task->where)))
      steps[attempt][task->step].cover(*task);
    named[trace.name_of(*task)][{attempt, task->step}].cover(*task);
  }
  for (const auto& [name, windows] : named) {
    std::vector<double> lengths_s;
    for (const auto& [step, window] : windows)
      lengths_s.push_back(seconds(window.end_ns - window.begin_ns));
    summary.tasks[name].step_s = median(std::move(lengths_s));
  }
  std::vector<double> lengths_s;
  std::set<std::uint32_t> distinct;
  for (const auto& [attempt, windows] : steps) {
    std::int64_t from_ns = windows.begin()->second.begin_ns;
    for (const auto& [step, window] : windows) {
      lengths_s.push_back(seconds(window.end_ns - from_ns));
      from_ns = window.end_ns;
      distinct.insert(step);
    }
  }
  if (lengths_s.empty())
    return;
  summary.step_s = median(std::move(lengths_s));
  summary.num_steps = static_cast<std::uint32_t>(distinct.size());
}

using Spans = std::map<std::string, Window>;

/// Returns what `task` waited for longest: of its causes, or of theirs if one
/// left no trace, the last to end. What began after it, such as a move for the
/// next step, did not delay it.
const Spans::value_type* latest_cause(const Spans& spans, const Causes& causes,
                                      const Spans::value_type& task) {
  const Spans::value_type* latest = nullptr;
  auto names = causes.at(task.first);
  while (!names.empty()) {
    const auto name = std::move(names.back());
    names.pop_back();
    const auto found = spans.find(name);
    if (found == spans.end()) {
      const auto& further = causes.at(name);
      names.insert(names.end(), further.begin(), further.end());
    } else if (found->second.begin_ns <= task.second.begin_ns
               && found->second.end_ns <= task.second.end_ns
               && (latest == nullptr
                   || found->second.end_ns > latest->second.end_ns)) {
      latest = &*found;
    }
  }
  return latest;
}

/// Walks from the task that ended last in the last step back along the
/// dataflow.
std::vector<std::string>
last_critical_path(const MergedTrace& trace,
                   const std::vector<const Slice*>& tasks,
                   const Causes& causes) {
  const auto attempts = attempts_of(trace);
  std::map<std::pair<std::uint32_t, std::uint32_t>, Spans> steps;
  for (const auto* task : tasks)
    if (const auto& name = trace.name_of(*task); causes.contains(name))
      steps[{attempts[task->where.process], task->step}][name].cover(*task);
  if (steps.empty())
    return {};
  const auto& spans = steps.rbegin()->second;
  std::vector<std::string> path;
  const auto last = std::ranges::max_element(
    spans, {}, [](const auto& span) { return span.second.end_ns; });
  for (const auto* at = &*last; at != nullptr;
       at = latest_cause(spans, causes, *at))
    path.push_back(at->first);
  std::ranges::reverse(path);
  return path;
}

double quantile(const std::vector<double>& sorted, double share) {
  const auto index = static_cast<std::size_t>(
    share * static_cast<double>(sorted.size() - 1) + 0.5);
  return sorted[index];
}

void sum_messages(const MergedTrace& trace, TraceSummary& summary) {
  std::map<std::string, std::vector<double>> waits_us;
  std::map<std::string, std::vector<double>> link_waits_us;
  for (const auto& arrow : trace.arrows) {
    const double wait_us
      = static_cast<double>(arrow.to.time_ns - arrow.from.time_ns) * 1e-3;
    const auto& name = trace.name_of(arrow);
    auto& cost = summary.messages[name];
    ++cost.count;
    cost.bytes += arrow.bytes;
    waits_us[name].push_back(wait_us);
    if (arrow.from.where.process != arrow.to.where.process)
      link_waits_us[trace.processes[arrow.from.where.process].name + " -> "
                    + trace.processes[arrow.to.where.process].name]
        .push_back(wait_us);
  }
  for (auto& [name, waits] : waits_us) {
    std::sort(waits.begin(), waits.end());
    summary.messages[name].p50_us = quantile(waits, 0.5);
    summary.messages[name].p99_us = quantile(waits, 0.99);
  }
  for (auto& [link, waits] : link_waits_us) {
    std::sort(waits.begin(), waits.end());
    summary.links.push_back({link, waits.size(), quantile(waits, 0.99)});
  }
  std::ranges::stable_sort(summary.links, std::greater<>{}, &LinkCost::p99_us);
}

/// Returns the tables of what a step consists of, what devices waited for, and
/// the worst links.
std::string tables_text(const TraceSummary& summary) {
  std::string text;
  if (!summary.tasks.empty())
    text += fmt::format("{:<28} {:>8} {:>20}\n", "task", "a step",
                        "devices waited for it");
  for (const auto& [name, cost] : summary.tasks)
    text += fmt::format("{:<28} {:>8} {:>20}\n", name,
                        duration_text(cost.step_s), duration_text(cost.wait_s));
  if (!summary.links.empty())
    text += fmt::format("{:<28} {:>8} {:>20}\n", "slowest links", "messages",
                        "p99 us");
  for (std::size_t i = 0; i < std::min(links_shown, summary.links.size()); ++i)
    text += fmt::format("{:<28} {:>8} {:>20.1f}\n", summary.links[i].link,
                        summary.links[i].count, summary.links[i].p99_us);
  return text;
}

} // namespace

TraceSummary summarise(const MergedTrace& trace, const Causes& causes) {
  TraceSummary summary;
  summary.lost = {trace.unmatched_arrows + trace.backward_arrows,
                  trace.dropped_events, trace.missing};
  sum_messages(trace, summary);
  for (const auto& process : trace.processes)
    if (process.clock_error_ns != 0)
      summary.clocks.push_back(
        {process.name, static_cast<double>(process.clock_add_ns) / 1e6,
         static_cast<double>(process.clock_error_ns) / 1e6});
  auto tasks = device_tasks(trace);
  if (tasks.empty())
    return summary;
  sum_idle(trace, tasks, summary);
  const auto of_steps
    = [&](const Slice* task) { return !is_evaluation(trace.name_of(*task)); };
  if (std::ranges::any_of(tasks, of_steps)) // or all tasks were evaluation
    std::erase_if(tasks, std::not_fn(of_steps));
  measure_steps(trace, tasks, summary);
  summary.critical_path = last_critical_path(trace, tasks, causes);
  return summary;
}

std::string summary_json(const TraceSummary& summary) {
  const auto text_or_null = [](const std::string& text) {
    return text.empty() ? Json() : Json(text);
  };
  Json messages = Json::object();
  for (const auto& [name, cost] : summary.messages)
    messages[name] = {{"count", cost.count},
                      {"bytes", cost.bytes},
                      {"p50_us", cost.p50_us},
                      {"p99_us", cost.p99_us}};
  Json tasks = Json::object();
  for (const auto& [name, cost] : summary.tasks)
    tasks[name] = {{"step_s", cost.step_s}, {"wait_s", cost.wait_s}};
  Json links = Json::array();
  for (const auto& cost : summary.links)
    links.push_back(
      {{"link", cost.link}, {"count", cost.count}, {"p99_us", cost.p99_us}});
  Json clocks = Json::array();
  for (const auto& clock : summary.clocks)
    clocks.push_back(
      {{"process", clock.process},
       {"add_ms", clock.add_ms},
       {"error_ms", clock.error_ms < 0 ? Json() : Json(clock.error_ms)}});
  const Json document = {
    {"step_s", summary.step_s},
    {"steps", summary.num_steps},
    {"critical_path", summary.critical_path},
    {"idle", summary.idle_s},
    {"slowest",
     {{"device", text_or_null(summary.slowest_device)},
      {"link", summary.links.empty() ? Json() : Json(summary.links[0].link)},
      {"sample", text_or_null(summary.slowest_sample)}}},
    {"tasks", std::move(tasks)},
    {"links", std::move(links)},
    {"messages", std::move(messages)},
    {"clocks", std::move(clocks)},
    {"unmatched_arrows", summary.lost.unmatched_arrows},
    {"dropped_events", summary.lost.dropped_events},
    {"complete_from_step", summary.lost.missing.whole_from + 1},
    {"removed_events", summary.lost.missing.events},
  };
  return document.dump(2, ' ', false, Json::error_handler_t::replace);
}

std::string summary_text(const TraceSummary& summary) {
  std::string text
    = fmt::format("{} traced steps, {} a step\n", summary.num_steps,
                  duration_text(summary.step_s));
  if (!summary.critical_path.empty())
    text += fmt::format("last step       {}\n",
                        fmt::join(summary.critical_path, " -> "));
  for (const auto& [reason, idle_s] : summary.idle_s)
    text += fmt::format("idle            {} waiting for {}\n",
                        duration_text(idle_s), reason);
  if (!summary.slowest_device.empty())
    text += fmt::format("busiest device  {}\n", summary.slowest_device);
  if (!summary.slowest_sample.empty())
    text += fmt::format("longest sample  {}\n", summary.slowest_sample);
  text += tables_text(summary);
  if (!summary.messages.empty())
    text += fmt::format("{:<28} {:>8} {:>10} {:>9} {:>9}\n", "message", "count",
                        "bytes", "p50 us", "p99 us");
  for (const auto& [name, cost] : summary.messages)
    text += fmt::format("{:<28} {:>8} {:>10} {:>9.1f} {:>9.1f}\n", name,
                        cost.count, bytes_text(static_cast<double>(cost.bytes)),
                        cost.p50_us, cost.p99_us);
  for (const auto& clock : summary.clocks)
    text += fmt::format(
      "clock           {} {:+.3f} ms, {}\n", clock.process, clock.add_ms,
      clock.error_ms < 0 ? "by the hosts' clocks alone"
                         : fmt::format("to {:.3f} ms", clock.error_ms));
  const auto& [unmatched, dropped, missing] = summary.lost;
  if (unmatched > 0 || dropped > 0)
    text += fmt::format("{} events dropped, {} arrows without both ends\n",
                        dropped, unmatched);
  return text + missing_text(missing);
}

} // namespace troupe::runtime
