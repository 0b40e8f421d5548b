// Writes a .events file: an 8-byte magic, then records {u32 kind, u32 payload
// bytes, payload}, native byte order. A text's record comes before the first
// event that uses it, so a cut file reads up to its last whole event.
#pragma once

#include "config/trace.hpp"
#include "config/trace_file.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
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
  /// of `events` were lost, to the size limit or the disk.
  std::uint64_t write(const std::vector<Event>& events, std::uint64_t dropped);
  /// Marks the file as complete.
  void close(std::uint64_t dropped);

private:
  void queue(RecordKind kind, const void* payload, std::size_t bytes);
  /// Each time twice as many are lost: a full file grows no further than that.
  void note_lost(std::uint64_t dropped);
  bool write_queue(); ///< false: an error, now and from now on

  std::filesystem::path file_;
  int descriptor_ = -1;
  std::uint64_t max_bytes_;
  std::uint64_t written_bytes_ = 0;
  std::uint64_t dropped_written_ = 0;
  bool full_ = false;          ///< nothing is written any more
  bool broken_ = false;        ///< a write failed, perhaps half-way
  std::size_t num_tracks_ = 0; ///< already in the file
  std::size_t num_names_ = 0;
  std::vector<std::byte> queue_;
};

} // namespace troupe::trace
