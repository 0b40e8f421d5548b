#include "runtime/trace/merged_trace.hpp"

#include "config/base/error.hpp"
#include "runtime/trace/clock_offsets.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>
#include <tuple>

namespace troupe::runtime {

namespace {

using trace::Event;
using trace::Kind;

/// Width of a slice that only holds an arrow's end: visible, yet short.
constexpr std::int64_t message_slice_ns = 1'000;

struct FlowEnd {
  std::uint64_t flow;
  std::int64_t time_ns;
  bool sent;
  TrackRef where;
  std::uint32_t name;
  std::uint32_t step;
  std::uint64_t bytes;
};

/// Converts the events of one track, by time, to slices, arrow ends and marks.
class TrackReader {
public:
  TrackReader(TrackRef where, std::int64_t last_ns, MergedTrace& out,
              std::vector<FlowEnd>& flows)
    : where_(where),
      last_ns_(last_ns),
      out_(out),
      flows_(flows) {}

  void read(const std::vector<Event>& events) {
    for (std::size_t i = 0; i < events.size(); ++i) {
      const std::int64_t next_ns = i + 1 < events.size()
                                     ? events[i + 1].time_ns
                                     : std::numeric_limits<std::int64_t>::max();
      read(events[i], next_ns);
    }
    while (!open_.empty())
      close(last_ns_).unfinished = true;
  }

private:
  void read(const Event& event, std::int64_t next_ns) {
    const auto name = static_cast<std::uint32_t>(event.name);
    switch (event.kind) {
    case Kind::begin:
      open(event, name);
      break;
    case Kind::end:
      end(event, name);
      break;
    case Kind::send:
    case Kind::receive:
      hold_arrow(event, name, next_ns);
      flows_.push_back({event.flow, event.time_ns, event.kind == Kind::send,
                        where_, name, event.step, event.amount});
      break;
    case Kind::counter:
      out_.counters.push_back(
        {where_, name, event.time_ns, std::bit_cast<double>(event.amount)});
      break;
    case Kind::spawn:
    case Kind::exit:
    case Kind::failure:
      out_.marks.push_back({where_, name, event.time_ns, event.kind});
      break;
    }
  }

  void open(const Event& event, std::uint32_t name) {
    Slice slice;
    slice.where = where_;
    slice.name = name;
    slice.begin_ns = event.time_ns;
    slice.amount = event.amount;
    slice.step = event.step;
    slice.depth = static_cast<std::uint32_t>(open_.size());
    open_.push_back(out_.slices.size());
    out_.slices.push_back(slice);
  }

  void end(const Event& event, std::uint32_t name) {
    const bool begun
      = std::any_of(open_.begin(), open_.end(), [&](std::size_t slice) {
          return out_.slices[slice].name == name;
        });
    if (!begun)
      return; // its start was dropped, and counted there
    while (out_.slices[open_.back()].name != name)
      close(event.time_ns).unfinished = true;
    close(event.time_ns);
  }

  Slice& close(std::int64_t time_ns) {
    auto& slice = out_.slices[open_.back()];
    slice.end_ns = std::max(time_ns, slice.begin_ns);
    open_.pop_back();
    return slice;
  }

  /// Viewers bind an arrow to the slice around its end: makes one if there is
  /// none.
  void hold_arrow(const Event& event, std::uint32_t name,
                  std::int64_t next_ns) {
    if (!open_.empty())
      return;
    Slice slice;
    slice.where = where_;
    slice.name = name;
    slice.begin_ns = event.time_ns;
    slice.end_ns = std::min(event.time_ns + message_slice_ns, next_ns);
    slice.amount = event.amount;
    slice.step = event.step;
    slice.message = true;
    out_.slices.push_back(slice);
  }

  TrackRef where_;
  std::int64_t last_ns_;
  MergedTrace& out_;
  std::vector<FlowEnd>& flows_;
  std::vector<std::size_t> open_; ///< indices of out_.slices, innermost last
};

void read_process(const trace::TraceFile& file, std::uint32_t process,
                  const ClockOffset& clock, MergedTrace& out,
                  std::vector<FlowEnd>& flows) {
  std::vector<std::vector<Event>> by_track(file.tracks.size());
  std::int64_t last_ns = std::numeric_limits<std::int64_t>::min();
  for (auto event : file.events) {
    event.time_ns += clock.at(event.time_ns);
    last_ns = std::max(last_ns, event.time_ns);
    const auto track = static_cast<std::size_t>(event.track);
    const auto name = static_cast<std::size_t>(event.name);
    if (track < by_track.size() && name < file.names.size())
      by_track[track].push_back(event);
    else
      ++out.dropped_events; // its names were cut off with the file's end
  }
  for (std::uint32_t track = 0; track < by_track.size(); ++track)
    TrackReader({process, track}, last_ns, out, flows).read(by_track[track]);
}

/// Pairs the ends of each flow in time order. Attempts of a run reuse flow ids,
/// so a flow may have several arrows, one after the other. If a full trace has
/// dropped the other end, it does not count as lost.
void draw_arrows(std::vector<FlowEnd>& flows, MergedTrace& out) {
  std::sort(flows.begin(), flows.end(), [](const auto& a, const auto& b) {
    return std::tuple(a.flow, a.time_ns, !a.sent)
           < std::tuple(b.flow, b.time_ns, !b.sent);
  });
  for (std::size_t i = 0; i < flows.size(); ++i) {
    const bool has_next
      = i + 1 < flows.size() && flows[i + 1].flow == flows[i].flow;
    if (!has_next || flows[i].sent == flows[i + 1].sent) {
      out.unmatched_arrows += flows[i].step >= out.missing.whole_from;
      continue;
    }
    const auto& first = flows[i];
    const auto& second = flows[++i];
    if (!first.sent) {
      ++out.backward_arrows;
      continue;
    }
    out.arrows.push_back({.from = {first.where, first.time_ns},
                          .to = {second.where, second.time_ns},
                          .name = first.name,
                          .step = first.step,
                          .bytes = first.bytes,
                          .flow = first.flow});
  }
  std::stable_sort(out.arrows.begin(), out.arrows.end(),
                   [](const Arrow& a, const Arrow& b) {
                     return a.from.time_ns < b.from.time_ns;
                   });
}

void note_missing(const trace::TraceFile& file, MissingPast& missing) {
  missing.events += file.removed.count;
  missing.whole_from = std::max(missing.whole_from, file.removed.whole_from());
}

} // namespace

std::string missing_text(const MissingPast& missing) {
  if (missing.events == 0)
    return "";
  return fmt::format("complete from step {} on: {} older events made room "
                     "(trace.max_gb)\n",
                     missing.whole_from + 1, missing.events);
}

MergedTrace merge_traces(const std::vector<trace::TraceFile>& files) {
  MergedTrace out;
  std::vector<FlowEnd> flows;
  const auto clocks = clock_offsets(files);
  for (std::uint32_t i = 0; i < files.size(); ++i) {
    const auto& file = files[i];
    const auto& clock = clocks[i];
    out.processes.push_back({file.process_name, file.process_number, file.pid,
                             file.tracks, file.names, clock.add_ns.back(),
                             clock.error_ns});
    out.dropped_events += file.dropped;
    note_missing(file, out.missing);
    read_process(file, i, clock, out, flows);
  }
  draw_arrows(flows, out);
  out.begin_ns = std::numeric_limits<std::int64_t>::max();
  for (const auto& slice : out.slices)
    out.begin_ns = std::min(out.begin_ns, slice.begin_ns);
  for (const auto& point : out.counters)
    out.begin_ns = std::min(out.begin_ns, point.time_ns);
  for (const auto& mark : out.marks)
    out.begin_ns = std::min(out.begin_ns, mark.time_ns);
  return out;
}

MergedTrace read_run_trace(const RunFolder& folder) {
  auto traces = trace::list_traces(folder.trace_folder());
  std::erase_if(traces, std::not_fn(trace::has_begun));
  if (traces.empty())
    throw ConfigError({.place = {folder.trace_folder().string(), 0},
                       .path = "",
                       .expected = "trace files (*.events)",
                       .got = "none",
                       .hint = "a run with trace.enabled=true"});
  std::vector<trace::TraceFile> files;
  for (const auto& trace : traces)
    files.push_back(trace::read_trace(trace));
  std::stable_sort(files.begin(), files.end(),
                   [](const auto& a, const auto& b) {
                     return a.process_number < b.process_number;
                   });
  return merge_traces(files);
}

} // namespace troupe::runtime
