// Follows the trace files of a run while processes write them: every call
// returns the whole records that were appended since the last one, as they are
// in the file. The page reads the file format itself, so only what is left out
// is decoded here, and an active run, a finished one and a crashed one are read
// alike.
#pragma once

#include "config/trace/trace_segments.hpp"
#include "config/trace/trace_writer.hpp"
#include "runtime/page/trace_index.hpp"
#include "runtime/run_folder/run_folder.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::runtime {

/// Records of one process. The first chunk of each segment begins with the
/// magic.
struct TraceChunk {
  std::uint32_t file = 0; ///< index in the order of discovery
  std::string bytes;
};

class TraceFollower {
public:
  /// Leaves out events that are further than `history_bytes` before a trace's
  /// end at its discovery; an `earlier` record then states which, like the
  /// writer's for events that it removed. Names and tracks are always returned.
  TraceFollower(RunFolder folder, std::uint64_t history_bytes);
  /// Returns the events of a window only, and nothing that comes later.
  TraceFollower(RunFolder folder, TraceWindow window);
  ~TraceFollower();
  TraceFollower(const TraceFollower&) = delete;
  TraceFollower& operator=(const TraceFollower&) = delete;

  /// Returns the names of traces that are new since the last call; their
  /// numbers continue those of the last call. Also finds further segments of
  /// known ones.
  std::vector<std::string> find_files();
  /// Returns about `max_bytes` of new records, over all files; empty: nothing
  /// new.
  std::vector<TraceChunk> read(std::size_t max_bytes);
  /// Returns the bytes that existed at discovery and are not read yet.
  std::uint64_t unread_bytes() const;
  std::uint64_t skipped_bytes() const {
    return skipped_bytes_;
  }

private:
  /// A trace of one process, read segment by segment.
  struct File {
    std::string name;
    std::uint32_t segment = 0;        ///< being read; 0: none yet
    std::deque<trace::Segment> later; ///< found, to be read next
    int descriptor = -1;
    std::uint64_t unread = 0;
    std::uint64_t skip_before = 0;  ///< end of the events to leave out
    std::uint64_t parsed = 0;       ///< bytes of whole records of the segment
    std::string pending;            ///< bytes after them
    trace::EarlierRecord earlier{}; ///< what preceded, as far as known
    bool left_out = false;          ///< whether events were, since `earlier`
                                    ///< was last returned
    bool broken = false;            ///< not a trace file: ignored
    TracePart part;                 ///< in a window: what is returned
  };

  static bool is_at_old_events(const File& file);
  void find_segments(File& file, const trace::SegmentedTrace& trace);
  void find_part(File& file, const trace::SegmentedTrace& trace);
  /// Adds a segment to those that are read next. Returns its bytes; none if it
  /// was removed meanwhile.
  static std::optional<std::uint64_t> add_next(File& file,
                                               const trace::Segment& segment);
  std::uint64_t bytes_before_end(const File& file) const;
  static bool open_next(File& file);
  void read_file(File& file, std::uint32_t number, std::size_t max_bytes,
                 std::vector<TraceChunk>& chunks);
  std::string pass_old(File& file);
  bool pass_record(File& file, std::string& wanted);
  std::string whole_records(File& file);
  void take_record(File& file, std::string_view record, std::string& wanted);

  RunFolder folder_;
  std::uint64_t history_bytes_ = 0;
  std::optional<TraceWindow> window_;
  std::uint64_t skipped_bytes_ = 0;
  std::vector<File> files_;
};

} // namespace troupe::runtime
