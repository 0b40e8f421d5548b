// Aligns the clocks of several hosts: no arrow arrives before it was sent, so
// each message between two processes bounds how far apart their clocks are, and
// those of ten seconds in both directions give an offset with its error. Times
// of one host are on one clock already.
#pragma once

#include "config/trace/trace_file.hpp"

#include <cstdint>
#include <vector>

namespace troupe::runtime {

/// Converts the times of a trace file to those of the first one.
struct ClockOffset {
  std::int64_t begin_ns = 0;        ///< time of its first event, on its own
                                    ///< clock
  std::vector<std::int64_t> add_ns; ///< for each ten seconds from there on
  /// The largest error; 0: the same clock, -1: unknown, the hosts' real-time
  /// clocks were compared.
  std::int64_t error_ns = 0;

  std::int64_t at(std::int64_t time_ns) const;
};

/// Returns one for each file, by ascending number of their processes; attempts
/// follow each other. Only messages with the first process count.
std::vector<ClockOffset>
clock_offsets(const std::vector<trace::TraceFile>& files);

} // namespace troupe::runtime
