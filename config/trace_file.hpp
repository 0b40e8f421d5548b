// Reads a .events file back. The file of a killed process reads up to its last
// whole event; `complete` tells whether it was closed by trace::stop().
#pragma once

#include "config/trace.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace troupe::trace {

struct TrackInfo {
  std::string name;
  TrackKind kind = TrackKind::actor;
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
  bool complete = false;
};

/// Throws ConfigError if `path` is no trace file; sizes in it are checked
/// before anything is allocated.
TraceFile read_trace(const std::filesystem::path& path);

/// Appends what `records` (the magic first, where they begin a file; whole
/// records) say to `file`. Throws ConfigError naming `source`.
void append_trace(TraceFile& file, const std::string& records,
                  const std::string& source);

} // namespace troupe::trace
