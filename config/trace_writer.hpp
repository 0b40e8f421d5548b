// Writes the .events files of a process: an 8-byte magic, then records {u32
// kind, u32 payload bytes, payload}, native byte order. A text's record comes
// before the first event that uses it, so a cut file reads up to its last whole
// event. With a limit on bytes the trace is a ring of files: the newest events
// are what a user of a long run looks at, so the oldest file goes first.
#pragma once

#include "config/trace.hpp"
#include "config/trace_file.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::trace {

inline constexpr std::string_view file_magic = "TROUPEv1";

enum class RecordKind : std::uint32_t {
  process = 1, ///< ProcessRecord, then the name
  track = 2,   ///< u32 TrackKind, then the name; ids count from 0
  name = 3,    ///< the text; ids count from 0
  events = 4,  ///< Event[]
  dropped = 5, ///< u64: events lost until here
  closed = 6,  ///< nothing: stop() was called
  earlier = 7, ///< EarlierRecord, in segments after the first
};

struct RecordHead {
  RecordKind kind;
  std::uint32_t payload_bytes;
};

struct ProcessRecord {
  std::uint32_t event_bytes; ///< sizeof(Event), also tells the byte order
  std::uint32_t process_number;
  std::uint32_t pid;
  std::uint32_t unused;
  std::int64_t monotonic_ns;
  std::int64_t realtime_ns;
};

/// Counts the events that a process recorded before a segment.
struct EarlierRecord {
  std::uint64_t events;
  std::uint32_t last_step; ///< the highest of those events
  std::uint32_t unused;
};

/// Not thread-safe: the drainer's.
class TraceWriter {
public:
  /// Throws FailureError if the file cannot be made.
  TraceWriter(const std::filesystem::path& file, std::string_view process_name,
              std::uint32_t process_number, std::uint64_t max_bytes);
  ~TraceWriter();
  TraceWriter(const TraceWriter&) = delete;
  TraceWriter& operator=(const TraceWriter&) = delete;

  /// Queues the texts that are not in the file yet.
  void add_texts(const std::deque<TrackInfo>& tracks,
                 const std::deque<std::string>& names);
  /// Writes queued texts, `events` and the count of lost ones. Returns how many
  /// of `events` the disk had no room for.
  std::uint64_t write(const std::vector<Event>& events, std::uint64_t dropped);
  /// Marks the trace as complete.
  void close(std::uint64_t dropped);

private:
  struct ClosedSegment {
    std::filesystem::path path;
    std::uint64_t bytes = 0;
  };

  void queue(RecordKind kind, const void* payload, std::size_t bytes);
  void queue_text(RecordKind kind, const std::string& payload);
  void queue_head(); ///< of a segment: what is true of all its events
  bool open_file();
  bool write_queue(); ///< false: an error, now and from now on
  /// Writes the first of `events` that this segment has room for; returns how
  /// many.
  std::size_t write_some(std::span<const Event> events, std::uint64_t dropped);
  bool next_segment(std::uint64_t dropped);
  void remove_oldest();

  std::filesystem::path first_file_;
  std::uint64_t max_bytes_;
  std::string process_; ///< payload of the process record
  std::deque<ClosedSegment> closed_;
  std::uint32_t segment_ = 1;
  int descriptor_ = -1;
  std::uint64_t segment_limit_ = 0;
  std::uint64_t written_bytes_ = 0; ///< of the segment
  std::uint64_t dropped_written_ = 0;
  EarlierRecord earlier_{};    ///< with what is in the segment so far
  bool told_full_ = false;     ///< in the log, once
  bool broken_ = false;        ///< a write failed, perhaps half-way
  std::size_t num_tracks_ = 0; ///< already in `texts_`
  std::size_t num_names_ = 0;
  std::vector<std::byte> texts_; ///< records of all tracks and names
  std::vector<std::byte> queue_;
};

} // namespace troupe::trace
