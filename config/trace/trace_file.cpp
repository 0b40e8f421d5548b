#include "config/trace/trace_file.hpp"

#include "config/base/error.hpp"
#include "config/trace/trace_writer.hpp"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>

namespace troupe::trace {

namespace {

/// Longest text of a track or process; a longer one indicates a damaged file.
constexpr std::size_t trace_text_limit_bytes = std::size_t{1} << 20;

/// Reads record by record; `left` bounds every length before allocation.
class TraceReader {
public:
  TraceReader(std::string source, std::istream& stream, std::uint64_t bytes)
    : source_(std::move(source)),
      stream_(stream),
      left_(bytes) {}

  void read_magic() {
    char magic[file_magic.size()] = {};
    if (!read(magic, sizeof magic)
        || std::string_view(magic, sizeof magic) != file_magic)
      throw ConfigError({source_, 0},
                        "expected a trace file of this version, got something "
                        "else");
  }

  /// Appends records to `file`; the caller sorts the events after reading
  /// everything.
  TraceFile read_records(TraceFile file) {
    file_ = std::move(file);
    RecordHead head{};
    while (!file_.complete && read(&head, sizeof head) && read_record(head)) {
    }
    return std::move(file_);
  }

private:
  bool read(void* into, std::size_t bytes) {
    if (bytes > left_)
      return false;
    stream_.read(static_cast<char*>(into), static_cast<std::streamsize>(bytes));
    left_ -= bytes;
    return stream_.good();
  }

  /// Returns false at the truncated end of a file.
  bool read_record(const RecordHead& head) {
    if (head.kind == RecordKind::events)
      return read_events(head.payload_bytes);
    if (head.payload_bytes > left_)
      return false;
    if (head.payload_bytes > trace_text_limit_bytes)
      throw damaged();
    std::string payload(head.payload_bytes, '\0');
    if (!read(payload.data(), payload.size()))
      return false;
    switch (head.kind) {
    case RecordKind::process:
      read_process(payload);
      break;
    case RecordKind::track: {
      const auto kind = take<std::uint32_t>(payload);
      file_.tracks.push_back({payload, static_cast<TrackKind>(kind & 1)});
      break;
    }
    case RecordKind::name:
      file_.names.push_back(payload);
      break;
    case RecordKind::dropped:
      file_.dropped = take<std::uint64_t>(payload);
      break;
    case RecordKind::closed:
      file_.complete = true;
      break;
    case RecordKind::earlier:
      begin_after(take<EarlierRecord>(payload));
      break;
    default:
      throw damaged();
    }
    return true;
  }

  bool read_events(std::uint64_t bytes) {
    const bool whole = bytes <= left_;
    const auto count = std::min(bytes, left_) / sizeof(Event);
    const auto old = file_.events.size();
    file_.events.resize(old + count);
    if (!read(file_.events.data() + old, count * sizeof(Event)))
      return false;
    for (auto i = old; i < file_.events.size(); ++i)
      check_event(file_.events[i]);
    file_.position += count;
    return whole;
  }

  /// Drops the events read so far if events between them and this segment are
  /// missing: a trace with a hole in it would look complete.
  void begin_after(const EarlierRecord& earlier) {
    if (earlier.events == file_.position)
      return;
    file_.events.clear();
    file_.removed = {earlier.events, earlier.last_step};
    file_.position = earlier.events;
  }

  void check_event(const Event& event) const {
    if (static_cast<std::uint32_t>(event.track) >= file_.tracks.size()
        || static_cast<std::uint32_t>(event.name) >= file_.names.size()
        || event.kind > Kind::failure)
      throw damaged();
  }

  void read_process(std::string& payload) {
    const auto process = take<ProcessRecord>(payload);
    if (process.event_bytes != sizeof(Event))
      throw damaged();
    file_.tracks.clear(); // each segment repeats all that were known by then
    file_.names.clear();
    file_.process_name = payload;
    file_.process_number = process.process_number;
    file_.pid = process.pid;
    file_.start_monotonic_ns = process.monotonic_ns;
    file_.start_realtime_ns = process.realtime_ns;
  }

  template <class T>
  T take(std::string& payload) const {
    if (payload.size() < sizeof(T))
      throw damaged();
    T value;
    std::memcpy(&value, payload.data(), sizeof value);
    payload.erase(0, sizeof value);
    return value;
  }

  ConfigError damaged() const {
    return {Place{source_, 0}, "expected a trace file, got a damaged "
                               "one"};
  }

  std::string source_;
  std::istream& stream_;
  std::uint64_t left_;
  TraceFile file_;
};

/// Sorts by time, because rings are drained one after another.
void sort_events(TraceFile& file) {
  std::ranges::stable_sort(file.events, {}, &Event::time_ns);
}

/// Returns whether a segment has its magic, which is written first.
bool has_magic(const std::filesystem::path& segment) {
  std::error_code error;
  const auto bytes = std::filesystem::file_size(segment, error);
  return !error && bytes >= file_magic.size();
}

/// Appends a segment to `file`; returns false if it cannot be read.
bool read_segment(const std::filesystem::path& path, TraceFile& file) {
  std::ifstream stream{path, std::ios::binary};
  std::error_code error;
  const auto bytes = std::filesystem::file_size(path, error);
  if (!stream || error || !has_magic(path))
    return false;
  TraceReader reader(path.string(), stream, bytes);
  reader.read_magic();
  file = reader.read_records(std::move(file));
  return true;
}

} // namespace

TraceFile read_trace(const std::filesystem::path& path) {
  return read_trace(SegmentedTrace{path.filename().string(), {{path, 1}}});
}

bool has_begun(const SegmentedTrace& trace) {
  return std::ranges::any_of(trace.segments, has_magic, &Segment::path);
}

TraceFile read_trace(const SegmentedTrace& trace) {
  TraceFile file;
  bool any = false;
  for (const auto& segment : trace.segments)
    any = read_segment(segment.path, file) || any;
  if (!any)
    throw ConfigError({trace.segments.back().path.string(), 0},
                      "expected a readable trace file of this version, got "
                      "none");
  sort_events(file);
  return file;
}

void append_trace(TraceFile& file, const std::string& records,
                  const std::string& source) {
  std::istringstream stream{records};
  TraceReader reader(source, stream, records.size());
  if (records.starts_with(file_magic))
    reader.read_magic();
  file = reader.read_records(std::move(file));
  sort_events(file);
}

} // namespace troupe::trace
