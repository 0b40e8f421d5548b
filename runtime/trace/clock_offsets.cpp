#include "runtime/trace/clock_offsets.hpp"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>
#include <unordered_map>

namespace troupe::runtime {

namespace {

using trace::Event;
using trace::Kind;
using trace::TraceFile;

constexpr std::int64_t span_ns = 10'000'000'000;
/// Two processes whose clocks differ by less are taken to be on one host,
/// unless their messages contradict: its monotonic clock is exact, while the
/// real-time clock may have been stepped a little.
constexpr std::int64_t one_host_ns = 1'000'000'000;
constexpr auto far = std::numeric_limits<std::int64_t>::max() / 4;

/// Bounds from messages on (their clock) - (the reference's).
struct Bounds {
  std::int64_t lowest = -far;
  std::int64_t highest = far;

  bool known() const {
    return lowest > -far && highest < far;
  }
  std::int64_t middle() const {
    return lowest + (highest - lowest) / 2;
  }
  std::int64_t error() const {
    return (std::abs(highest - lowest) + 1) / 2;
  }
};

/// Ends of arrows by their flow.
using Ends = std::unordered_map<std::uint64_t, Event>;

Ends ends_of(const TraceFile& file) {
  Ends ends;
  for (const auto& event : file.events)
    if (event.kind == Kind::send || event.kind == Kind::receive)
      ends[event.flow] = event;
  return ends;
}

std::vector<Bounds> bounds_of(const TraceFile& file, const Ends& reference) {
  std::vector<Bounds> spans;
  for (const auto& event : file.events) {
    if (event.kind != Kind::send && event.kind != Kind::receive)
      continue;
    const auto other = reference.find(event.flow);
    if (other == reference.end() || other->second.kind == event.kind)
      continue;
    const auto span = static_cast<std::size_t>(
      (event.time_ns - file.events.front().time_ns) / span_ns);
    spans.resize(std::max(spans.size(), span + 1));
    const auto apart = event.time_ns - other->second.time_ns;
    auto& bounds = spans[span];
    if (event.kind == Kind::receive)
      bounds.highest = std::min(bounds.highest, apart);
    else
      bounds.lowest = std::max(bounds.lowest, apart);
  }
  return spans;
}

/// Returns the offset by the real-time clocks at the start of both.
std::int64_t real_time_offset(const TraceFile& file,
                              const TraceFile& reference) {
  return (file.start_realtime_ns - file.start_monotonic_ns)
         - (reference.start_realtime_ns - reference.start_monotonic_ns);
}

bool is_one_host(std::int64_t real_time, const std::vector<Bounds>& spans) {
  return std::abs(real_time) < one_host_ns
         && std::ranges::all_of(spans, [](const Bounds& bounds) {
              return bounds.lowest <= 0 && bounds.highest >= 0;
            });
}

ClockOffset offset_of(const TraceFile& file, const TraceFile& reference,
                      const Ends& ends) {
  ClockOffset offset;
  if (!file.events.empty())
    offset.begin_ns = file.events.front().time_ns;
  const auto real_time = real_time_offset(file, reference);
  const auto spans = bounds_of(file, ends);
  offset.add_ns = {real_time};
  if (is_one_host(real_time, spans)) {
    offset.add_ns = {0};
    return offset;
  }
  auto known = std::ranges::find_if(spans, &Bounds::known);
  offset.error_ns = -1;
  if (known == spans.end())
    return offset;
  offset.add_ns.clear();
  for (auto span = spans.begin(); span != spans.end(); ++span) {
    if (span->known())
      known = span;
    offset.add_ns.push_back(-known->middle());
    offset.error_ns = std::max(offset.error_ns, known->error());
  }
  return offset;
}

} // namespace

std::int64_t ClockOffset::at(std::int64_t time_ns) const {
  const auto span
    = std::clamp<std::int64_t>((time_ns - begin_ns) / span_ns, 0,
                               static_cast<std::int64_t>(add_ns.size()) - 1);
  return add_ns[static_cast<std::size_t>(span)];
}

std::vector<ClockOffset>
clock_offsets(const std::vector<trace::TraceFile>& files) {
  std::vector<ClockOffset> offsets;
  std::vector<std::size_t> masters; // the first process's file of each attempt
  for (std::size_t i = 0; i < files.size(); ++i)
    if (files[i].process_number == files.front().process_number)
      masters.push_back(i);
  std::vector<Ends> ends;
  for (const auto master : masters)
    ends.push_back(ends_of(files[master]));
  std::map<std::uint32_t, std::size_t> attempts; // files per number so far
  for (const auto& file : files) {
    const auto attempt
      = std::min(attempts[file.process_number]++, masters.size() - 1);
    const auto& master = files[masters[attempt]];
    if (&file == &master) {
      offsets.push_back(offset_of(file, files.front(), {}));
      continue;
    }
    auto offset = offset_of(file, master, ends[attempt]);
    for (auto& add_ns : offset.add_ns)
      add_ns += offsets[masters[attempt]].add_ns.front();
    offsets.push_back(std::move(offset));
  }
  return offsets;
}

} // namespace troupe::runtime
