// Reads the .events files of a process. Files of a killed process are read up
// to the last complete event; `complete` is true if trace::stop() closed them.
#pragma once

#include "config/trace/trace.hpp"
#include "config/trace/trace_segments.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace troupe::trace {

struct TrackInfo {
  std::string name;
  TrackKind kind = TrackKind::actor;
};

/// Oldest events that a full trace removed for newer ones.
struct RemovedEvents {
  std::uint64_t count = 0;
  std::uint32_t last_step = 0; ///< highest step of a removed event

  /// Returns the first step of which no event was removed.
  std::uint32_t whole_from() const {
    return count == 0 ? 0 : last_step + 1;
  }
};

struct TraceFile {
  std::string process_name;
  std::uint32_t process_number = 0;
  std::uint32_t pid = 0;
  std::int64_t start_monotonic_ns = 0; ///< both clocks at start(), for aligning
  std::int64_t start_realtime_ns = 0;  ///< processes of different hosts
  std::vector<TrackInfo> tracks;       ///< index = Track
  std::vector<std::string> names;      ///< index = Name
  std::vector<Event> events;           ///< sorted by time; ties as recorded
  std::uint64_t dropped = 0;
  RemovedEvents removed;      ///< events before the first of `events`
  std::uint64_t position = 0; ///< number of events, with removed ones
  bool complete = false;
};

/// Reads a trace file. Throws ConfigError if `path` is not one; sizes in it are
/// checked before anything is allocated.
TraceFile read_trace(const std::filesystem::path& path);

/// Returns whether the process wrote to its trace before it was killed.
bool has_begun(const SegmentedTrace& trace);

/// Reads all segments as one trace. Segments that a running process removes
/// meanwhile, and one that was not begun, are left out.
TraceFile read_trace(const SegmentedTrace& trace);

/// Appends the events of `records` to `file`: whole records, beginning with the
/// magic at the start of a segment. Throws ConfigError naming `source`.
void append_trace(TraceFile& file, const std::string& records,
                  const std::string& source);

} // namespace troupe::trace
