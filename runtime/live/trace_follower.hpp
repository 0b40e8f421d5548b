// Follows the trace files of a run while processes write them: every call gives
// the whole records that were appended since the last one, as they stand in the
// file. The page reads the file format itself, so nothing is decoded here but
// what is left out, and a run under way, a finished one and a crashed one are
// read alike.
#pragma once

#include "config/trace_segments.hpp"
#include "config/trace_writer.hpp"
#include "runtime/run_folder.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <string>
#include <vector>

namespace troupe::runtime {

/// Records of one process. The magic leads the first chunk of each segment.
struct TraceChunk {
  std::uint32_t file = 0; ///< in the order in which traces were found
  std::string bytes;
};

class TraceFollower {
public:
  /// Events further than `history_bytes` before a trace's end, as it is when
  /// it is found, are left out; an `earlier` record then says which, as the
  /// writer does of events that it removed. Names and tracks are always given.
  TraceFollower(RunFolder folder, std::uint64_t history_bytes);
  ~TraceFollower();
  TraceFollower(const TraceFollower&) = delete;
  TraceFollower& operator=(const TraceFollower&) = delete;

  /// Names of traces that are new since the last call; their numbers go on from
  /// those of the last call. Also looks for further segments of known ones.
  std::vector<std::string> find_files();
  /// About `max_bytes` of new records, over all files; empty: nothing new.
  std::vector<TraceChunk> read(std::size_t max_bytes);
  /// Bytes that were there when they were found and are not read yet.
  std::uint64_t unread_bytes() const;
  std::uint64_t skipped_bytes() const {
    return skipped_bytes_;
  }

private:
  /// A trace of one process, in one of its segments.
  struct File {
    std::string name;
    std::uint32_t segment = 0;        ///< that is read; 0: none yet
    std::deque<trace::Segment> later; ///< found, to be read after it
    int descriptor = -1;
    std::uint64_t unread = 0;
    std::uint64_t skip_before = 0;  ///< events that end before it are left out
    std::uint64_t parsed = 0;       ///< bytes of whole records of the segment
    std::string pending;            ///< read after them
    trace::EarlierRecord earlier{}; ///< what came before, as far as is known
    bool left_out = false;          ///< events, since `earlier` was last given
    bool broken = false;            ///< no trace file: left alone
  };

  void find_segments(File& file, const trace::SegmentedTrace& trace);
  static bool open_next(File& file);
  void read_file(File& file, std::uint32_t number, std::size_t max_bytes,
                 std::vector<TraceChunk>& chunks);
  std::string whole_records(File& file);
  void take_record(File& file, std::size_t at, std::size_t size,
                   std::string& wanted);

  RunFolder folder_;
  std::uint64_t history_bytes_;
  std::uint64_t skipped_bytes_ = 0;
  std::vector<File> files_;
};

} // namespace troupe::runtime
