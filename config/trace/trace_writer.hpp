// Writes the .events files of a process: an 8-byte magic, then records {u32
// kind, u32 payload bytes, payload}, native byte order. The record of a text
// precedes the first event that uses it, so a truncated file can be read up to
// its last whole event. With a limit on bytes the trace is a ring of files:
// users of a long run look at the newest events, so the oldest file is removed
// first.
#pragma once

#include "config/trace/trace.hpp"
#include "config/trace/trace_file.hpp"

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
  dropped = 5, ///< u64: number of events lost so far
  closed = 6,  ///< empty: stop() was called
  earlier = 7, ///< EarlierRecord, in segments after the first
};

struct RecordHead {
  RecordKind kind;
  std::uint32_t payload_bytes;
};

struct ProcessRecord {
  std::uint32_t event_bytes; ///< sizeof(Event), also detects the byte order
  std::uint32_t process_number;
  std::uint32_t pid;
  std::uint32_t unused;
  std::int64_t monotonic_ns;
  std::int64_t realtime_ns;
};

/// Counts the events that a process recorded before a segment.
struct EarlierRecord {
  std::uint64_t events;
  std::uint32_t last_step; ///< highest step of those events
  std::uint32_t unused;
};

/// Writes the file; not thread-safe, used by the drainer alone.
class TraceWriter {
public:
  /// Throws FailureError if the file cannot be created.
  TraceWriter(const std::filesystem::path& file, std::string_view process_name,
              std::uint32_t process_number, std::uint64_t max_bytes);
  ~TraceWriter();
  TraceWriter(const TraceWriter&) = delete;
  TraceWriter& operator=(const TraceWriter&) = delete;

  /// Queues the texts that are not in the file yet.
  void add_texts(const std::deque<TrackInfo>& tracks,
                 const std::deque<std::string>& names);
  /// Writes queued texts, `events` and the count of lost events. Returns how
  /// many of `events` did not fit on the disk.
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
  void queue_head(); ///< head of a segment: applies to all its events
  bool open_file();
  bool write_queue(); ///< false: an error, which is permanent
  /// Writes the first of `events` that fit into this segment; returns their
  /// number.
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
  std::uint64_t written_bytes_ = 0; ///< in the current segment
  std::uint64_t dropped_written_ = 0;
  EarlierRecord earlier_{};    ///< including the current segment so far
  bool told_full_ = false;     ///< logged once
  bool broken_ = false;        ///< a write failed, possibly midway
  std::size_t num_tracks_ = 0; ///< already in `texts_`
  std::size_t num_names_ = 0;
  std::vector<std::byte> texts_; ///< records of all tracks and names
  std::vector<std::byte> queue_;
};

} // namespace troupe::trace
