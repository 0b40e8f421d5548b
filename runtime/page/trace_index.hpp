// Knows where in the traces of a run each step is, so that a viewer of a long
// run gets the detail of an old one on demand.
#pragma once

#include "runtime/run_folder/run_folder.hpp"

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

namespace troupe::runtime {

/// A part of a trace, from a record to a record. Steps count from 0.
struct TracePart {
  std::uint32_t segment = 0; ///< number of the segment in which it begins
  std::uint64_t begin = 0;   ///< byte in that segment
  std::uint32_t end_segment = 0;
  std::uint64_t end = 0; ///< byte in that segment
};

/// Steps whose events a viewer gets as a whole, and where they are.
struct TraceWindow {
  std::uint32_t first_step = 0;
  std::uint32_t last_step = 0;
  std::map<std::string, TracePart> parts; ///< by name of the trace
};

class TraceIndex {
public:
  explicit TraceIndex(RunFolder folder);

  /// Looks at what was appended since the last call.
  void update();
  /// Returns a step and as many before and after it as have at most about
  /// `max_bytes` together.
  TraceWindow around(std::uint32_t step, std::uint64_t max_bytes) const;

private:
  /// Records of one segment, about 256 KB of them.
  struct Block {
    std::uint32_t segment = 0;
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::uint32_t last_step = 0; ///< the highest so far in this trace
  };
  struct Trace {
    std::deque<Block> blocks;
    std::uint32_t segment = 0; ///< the newest that was looked at
    std::uint64_t walked = 0;  ///< bytes of it
  };

  static void walk(const std::filesystem::path& path, std::uint32_t segment,
                   Trace& trace);
  TraceWindow window(std::uint32_t first_step, std::uint32_t last_step) const;
  static std::uint64_t bytes_of(const Trace& trace, const TracePart& part);

  RunFolder folder_;
  std::map<std::string, Trace> traces_;
};

} // namespace troupe::runtime
