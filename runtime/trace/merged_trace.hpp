// The trace files of all processes of a run as one picture: slices on tracks,
// arrows with both ends, counters and marks, on one clock. Chrome's JSON and
// the summary are derived from it. What was lost is counted, never guessed.
#pragma once

#include "config/trace/trace_file.hpp"
#include "runtime/run_folder/run_folder.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::runtime {

/// A track of the picture: `track` of process `process` (index in the trace).
struct TrackRef {
  std::uint32_t process = 0;
  std::uint32_t track = 0;
  auto operator<=>(const TrackRef&) const = default;
};

/// A span. Slices of one track nest or are disjoint.
struct Slice {
  TrackRef where;
  std::uint32_t name = 0; ///< index in the process's names
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::uint64_t amount = 0;
  std::uint32_t step = 0;
  std::uint32_t depth = 0; ///< 0: inside no other slice
  bool unfinished = false; ///< its end was not recorded
  bool message = false;    ///< drawn only to hold the end of an arrow
};

struct ArrowEnd {
  TrackRef where;
  std::int64_t time_ns = 0;
};
/// A message from its send to its handling; both ends are inside slices.
struct Arrow {
  ArrowEnd from;
  ArrowEnd to;
  std::uint32_t name = 0; ///< index in the sender process's names
  std::uint32_t step = 0;
  std::uint64_t bytes = 0;
  std::uint64_t flow = 0; ///< for a reply: reply_flow() of its request's
};

struct CounterPoint {
  TrackRef where;
  std::uint32_t name = 0;
  std::int64_t time_ns = 0;
  double value = 0;
};

/// A point in time: an actor's start or end, a failure.
struct Mark {
  TrackRef where;
  std::uint32_t name = 0;
  std::int64_t time_ns = 0;
  trace::Kind kind = trace::Kind::spawn;
};

struct TracedProcess {
  std::string name;
  std::uint32_t number = 0;
  std::uint32_t pid = 0;
  std::vector<trace::TrackInfo> tracks;
  std::vector<std::string> names;
  std::int64_t clock_add_ns = 0;   ///< added to its times, at its end
  std::int64_t clock_error_ns = 0; ///< ClockOffset::error_ns
};

/// The part of a run that a full trace dropped: its oldest steps.
struct MissingPast {
  std::uint64_t events = 0;
  std::uint32_t whole_from = 0; ///< every event of this step and later exists
};

struct MergedTrace {
  std::vector<TracedProcess> processes;
  std::vector<Slice> slices; ///< by track, then by start time, outer first
  std::vector<Arrow> arrows; ///< by send time
  std::vector<CounterPoint> counters;
  std::vector<Mark> marks;
  std::int64_t begin_ns = 0; ///< the first event
  MissingPast missing;
  std::uint64_t unmatched_arrows = 0; ///< one end was lost: not drawn
  std::uint64_t backward_arrows = 0;  ///< clocks disagree: not drawn
  std::uint64_t dropped_events = 0;

  const std::string& name_of(const Slice& slice) const {
    return processes[slice.where.process].names[slice.name];
  }
  const std::string& name_of(const Arrow& arrow) const {
    return processes[arrow.from.where.process].names[arrow.name];
  }
  const trace::TrackInfo& track_of(TrackRef where) const {
    return processes[where.process].tracks[where.track];
  }
};

/// Returns a line with the step from which on the trace is complete; empty:
/// from its beginning.
std::string missing_text(const MissingPast& missing);

/// Merges traces; times are on the first file's clock
/// (runtime/trace/clock_offsets.hpp).
MergedTrace merge_traces(const std::vector<trace::TraceFile>& files);

/// Reads all trace/*.events of a run. Throws ConfigError if there are none or
/// one is no trace file.
MergedTrace read_run_trace(const RunFolder& folder);

} // namespace troupe::runtime
