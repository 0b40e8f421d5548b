#include "actors/master/step_report.hpp"

#include "actors/protocol/master_messages.hpp"
#include "actors/protocol/residency_messages.hpp"
#include "actors/protocol/sum_parts.hpp"

#include <algorithm>

namespace troupe::actors {

namespace {

Seconds seconds_of(std::uint64_t nanoseconds) {
  return std::chrono::nanoseconds{nanoseconds};
}

void add_peaks(StepReport& report, TaskReport& task,
               const std::vector<PeakMemory>& peaks) {
  for (const PeakMemory& peak : peaks) {
    task.peak_bytes[peak.device] = peak.bytes;
    report.peak_memory_bytes
      = std::max(report.peak_memory_bytes, peak.process_bytes);
  }
}

/// Adds a task whose devices were all busy for the same time.
template <class Done>
void add_on_all_devices(StepReport& report, TaskReport task, const Done& done) {
  const auto busy = seconds_of(done.busy_ns);
  task.busy.push_back(busy);
  for (const Rank rank : task.devices)
    report.busy[rank] += busy;
  add_peaks(report, task, done.peaks);
  report.tasks.push_back(std::move(task));
}

} // namespace

void count_tokens(StepReport& report, std::span<const std::uint32_t> tokens) {
  report.tokens.all = report.tokens.squared = report.tokens.longest = 0;
  for (const std::uint64_t length : tokens) {
    report.tokens.all += length;
    report.tokens.squared += length * length;
  }
  if (!tokens.empty())
    report.tokens.longest = std::ranges::max(tokens);
}

TaskReport task_report(const plans::TaskTemplate& entry,
                       Clock::time_point started) {
  return {.name = entry.name,
          .call = entry.call,
          .kind = entry.kind,
          .devices = entry.devices,
          .started = started,
          .ended = Clock::now(),
          .busy = {}};
}

void add_call(StepReport& report, TaskReport task, const CallDone& done) {
  for (std::size_t i = 0; i < done.parts.size(); ++i) {
    const auto busy = seconds_of(done.parts[i].busy_ns);
    task.busy.push_back(busy);
    if (i < task.devices.size())
      report.busy[task.devices[i]] += busy;
    add_peaks(report, task, done.parts[i].peaks);
    report.sums.merge(to_metric_sums(done.parts[i].sums));
  }
  report.traffic.fetched_bytes += done.fetched_bytes;
  report.tasks.push_back(std::move(task));
}

void add_move(StepReport& report, TaskReport task, const MoveDone& done) {
  report.traffic.moved_bytes += done.bytes;
  report.traffic.wire_bytes += done.wire_bytes;
  add_on_all_devices(report, std::move(task), done);
}

void add_residency(StepReport& report, TaskReport task,
                   const ResidencyDone& done) {
  add_on_all_devices(report, std::move(task), done);
}

} // namespace troupe::actors
