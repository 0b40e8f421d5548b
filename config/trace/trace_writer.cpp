#include "config/trace/trace_writer.hpp"

#include "config/base/error.hpp"
#include "config/base/log.hpp"
#include "config/trace/trace_at.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <system_error>

namespace troupe::trace {

namespace {

/// Number of files of a full trace. The oldest is removed when the next one
/// begins, so at least six eighths of the allowed bytes are present.
constexpr std::uint64_t segments_of_a_full_trace = 8;
/// Fewest events that a segment has room for, however many names it begins
/// with.
constexpr std::uint64_t fewest_events_a_segment = 8;
constexpr std::uint64_t closing_bytes
  = 2 * sizeof(RecordHead) + sizeof(std::uint64_t);

std::string errno_text() {
  return std::generic_category().message(errno);
}

FailureError cannot_write(const std::filesystem::path& file,
                          const std::string& cause) {
  return FailureError({.code = Errc::io,
                       .who = "trace",
                       .what = "cannot write " + file.string(),
                       .cause = cause});
}

std::int64_t realtime_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
           std::chrono::system_clock::now().time_since_epoch())
    .count();
}

} // namespace

TraceWriter::TraceWriter(const std::filesystem::path& file,
                         std::string_view process_name,
                         std::uint32_t process_number, std::uint64_t max_bytes)
  : first_file_(file),
    max_bytes_(max_bytes) {
  if (file.has_parent_path()) {
    std::error_code error;
    std::filesystem::create_directories(file.parent_path(), error);
    if (error)
      throw cannot_write(file, error.message());
  }
  remove_trace(file); // segments of an older trace would follow ours
  const ProcessRecord process{.event_bytes = sizeof(Event),
                              .process_number = process_number,
                              .pid = static_cast<std::uint32_t>(::getpid()),
                              .unused = 0,
                              .monotonic_ns = now_ns(),
                              .realtime_ns = realtime_ns()};
  process_.assign(reinterpret_cast<const char*>(&process), sizeof process);
  process_ += process_name;
  queue_head();
  if (open_file() && write_queue())
    return;
  const auto cause = errno_text();
  if (descriptor_ >= 0)
    ::close(descriptor_);
  throw cannot_write(file, cause);
}

TraceWriter::~TraceWriter() {
  if (descriptor_ >= 0)
    ::close(descriptor_);
}

bool TraceWriter::open_file() {
  descriptor_ = ::open(segment_path(first_file_, segment_).c_str(),
                       O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  written_bytes_ = 0;
  return descriptor_ >= 0;
}

void TraceWriter::queue_head() {
  queue_.resize(file_magic.size());
  std::memcpy(queue_.data(), file_magic.data(), file_magic.size());
  queue(RecordKind::process, process_.data(), process_.size());
  if (segment_ > 1)
    queue(RecordKind::earlier, &earlier_, sizeof earlier_);
  queue_.insert(queue_.end(), texts_.begin(), texts_.end());
  segment_limit_
    = std::max(max_bytes_ / segments_of_a_full_trace,
               2 * queue_.size() + sizeof(RecordHead)
                 + fewest_events_a_segment * sizeof(Event) + closing_bytes);
}

void TraceWriter::queue(RecordKind kind, const void* payload,
                        std::size_t bytes) {
  const RecordHead head{kind, static_cast<std::uint32_t>(bytes)};
  const auto at = queue_.size();
  queue_.resize(at + sizeof head + bytes);
  std::memcpy(queue_.data() + at, &head, sizeof head);
  if (bytes != 0)
    std::memcpy(queue_.data() + at + sizeof head, payload, bytes);
}

void TraceWriter::queue_text(RecordKind kind, const std::string& payload) {
  const auto at = static_cast<std::ptrdiff_t>(queue_.size());
  queue(kind, payload.data(), payload.size());
  if (max_bytes_ != 0)
    texts_.insert(texts_.end(), queue_.begin() + at, queue_.end());
}

void TraceWriter::add_texts(const std::deque<TrackInfo>& tracks,
                            const std::deque<std::string>& names) {
  for (; num_tracks_ < tracks.size(); ++num_tracks_) {
    const auto& track = tracks[num_tracks_];
    const auto kind = static_cast<std::uint32_t>(track.kind);
    queue_text(RecordKind::track,
               std::string(reinterpret_cast<const char*>(&kind), sizeof kind)
                 + track.name);
  }
  for (; num_names_ < names.size(); ++num_names_)
    queue_text(RecordKind::name, names[num_names_]);
}

std::uint64_t TraceWriter::write(const std::vector<Event>& events,
                                 std::uint64_t dropped) {
  if (broken_)
    return events.size();
  std::span<const Event> left{events};
  do {
    left = left.subspan(write_some(left, dropped));
  } while (!left.empty() && !broken_ && next_segment(dropped));
  if (!broken_ && left.empty())
    return 0;
  log::config.warn(fmt::format("cannot write {}: {}; later events are dropped",
                               segment_path(first_file_, segment_).string(),
                               errno_text()));
  broken_ = true;
  return left.size();
}

std::size_t TraceWriter::write_some(std::span<const Event> events,
                                    std::uint64_t dropped) {
  auto count = events.size();
  if (max_bytes_ != 0) {
    const auto taken = written_bytes_ + queue_.size() + sizeof(RecordHead)
                       + sizeof(RecordHead) + sizeof dropped + closing_bytes;
    count = taken >= segment_limit_
              ? 0
              : std::min(count, (segment_limit_ - taken) / sizeof(Event));
  }
  if (count != 0)
    queue(RecordKind::events, events.data(), count * sizeof(Event));
  if (dropped != dropped_written_)
    queue(RecordKind::dropped, &dropped, sizeof dropped);
  if (!queue_.empty() && !write_queue()) {
    broken_ = true;
    return 0;
  }
  dropped_written_ = dropped;
  earlier_.events += count;
  for (const auto& event : events.first(count))
    earlier_.last_step = std::max(earlier_.last_step, event.step);
  return count;
}

bool TraceWriter::next_segment(std::uint64_t dropped) {
  ::close(descriptor_);
  closed_.push_back({segment_path(first_file_, segment_), written_bytes_});
  ++segment_;
  queue_head();
  if (dropped != 0)
    queue(RecordKind::dropped, &dropped, sizeof dropped);
  remove_oldest();
  broken_ = !open_file() || !write_queue();
  return !broken_;
}

/// Makes room for one more segment.
void TraceWriter::remove_oldest() {
  std::uint64_t bytes = segment_limit_;
  for (const auto& segment : closed_)
    bytes += segment.bytes;
  while (!closed_.empty() && bytes > max_bytes_) {
    std::error_code ignored; // may be removed already
    std::filesystem::remove(closed_.front().path, ignored);
    if (!told_full_)
      log::config.info(fmt::format("{}: trace.max_gb is reached, the oldest "
                                   "steps make room for the newest",
                                   first_file_.string()));
    told_full_ = true;
    bytes -= closed_.front().bytes;
    closed_.pop_front();
  }
}

void TraceWriter::close(std::uint64_t dropped) {
  queue_.clear();
  if (!broken_) { // otherwise the file ends inside a record
    queue(RecordKind::dropped, &dropped, sizeof dropped);
    queue(RecordKind::closed, nullptr, 0);
    write_queue();
  }
  if (descriptor_ >= 0)
    ::close(descriptor_);
  descriptor_ = -1;
}

bool TraceWriter::write_queue() {
  const auto* at = queue_.data();
  auto left = queue_.size();
  while (left > 0) {
    const auto done = ::write(descriptor_, at, left);
    if (done < 0 && errno == EINTR)
      continue;
    if (done < 0)
      return false;
    at += done;
    left -= static_cast<std::size_t>(done);
    written_bytes_ += static_cast<std::uint64_t>(done);
  }
  queue_.clear();
  return true;
}

} // namespace troupe::trace
