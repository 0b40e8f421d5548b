// Reads the .events files of a process back. Those of a killed process read up
// to its last whole event; `complete` tells whether trace::stop() closed them.
#pragma once

#include "config/trace.hpp"
#include "config/trace_segments.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace troupe::trace {

struct TrackInfo {
  std::string name;
  TrackKind kind = TrackKind::actor;
};

/// Oldest events that a full trace gave up for newer ones.
struct RemovedEvents {
  std::uint64_t count = 0;
  std::uint32_t last_step = 0; ///< the highest that one of them belongs to

  /// Returns the first step of which none is removed.
  std::uint32_t whole_from() const {
    return count == 0 ? 0 : last_step + 1;
  }
};

struct TraceFile {
  std::string process_name;
  std::uint32_t process_number = 0;
  std::uint32_t pid = 0;
  std::int64_t start_monotonic_ns = 0; ///< both clocks at start(), to align
  std::int64_t start_realtime_ns = 0;  ///< processes of different hosts
  std::vector<TrackInfo> tracks;       ///< index = Track
  std::vector<std::string> names;      ///< index = Name
  std::vector<Event> events;           ///< by time; ties as recorded
  std::uint64_t dropped = 0;
  RemovedEvents removed;      ///< that were before the first of `events`
  std::uint64_t position = 0; ///< events up to the last one, with removed ones
  bool complete = false;
};

/// Throws ConfigError if `path` is no trace file; sizes in it are checked
/// before anything is allocated.
TraceFile read_trace(const std::filesystem::path& path);

/// Reads all segments as one. Those that a running process removes meanwhile
/// are left out.
TraceFile read_trace(const SegmentedTrace& trace);

/// Appends what `records` (the magic first, where they begin a segment; whole
/// records) say to `file`. Throws ConfigError naming `source`.
void append_trace(TraceFile& file, const std::string& records,
                  const std::string& source);

} // namespace troupe::trace
