#include "config/trace_writer.hpp"

#include "config/error.hpp"
#include "config/log.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <system_error>

namespace troupe::trace {

namespace {

/// Of a full file: 64 bits double 64 times.
constexpr std::uint64_t room_for_counts
  = 64 * (sizeof(RecordHead) + sizeof(std::uint64_t));

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
  : file_(file),
    max_bytes_(max_bytes) {
  if (file.has_parent_path()) {
    std::error_code error;
    std::filesystem::create_directories(file.parent_path(), error);
    if (error)
      throw cannot_write(file, error.message());
  }
  descriptor_
    = ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (descriptor_ < 0)
    throw cannot_write(file, errno_text());
  const ProcessRecord process{
    .event_bytes = sizeof(Event),
    .process_number = process_number,
    .pid = static_cast<std::uint32_t>(::getpid()),
    .unused = 0,
    .monotonic_ns = std::chrono::steady_clock::now().time_since_epoch().count(),
    .realtime_ns = realtime_ns()};
  std::string payload(reinterpret_cast<const char*>(&process), sizeof process);
  payload += process_name;
  queue_.resize(file_magic.size());
  std::memcpy(queue_.data(), file_magic.data(), file_magic.size());
  queue(RecordKind::process, payload.data(), payload.size());
  if (!write_queue()) {
    const auto cause = errno_text();
    ::close(descriptor_);
    throw cannot_write(file, cause);
  }
}

TraceWriter::~TraceWriter() {
  if (descriptor_ >= 0)
    ::close(descriptor_);
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

void TraceWriter::add_texts(const std::deque<TrackInfo>& tracks,
                            const std::deque<std::string>& names) {
  for (; num_tracks_ < tracks.size(); ++num_tracks_) {
    const auto& track = tracks[num_tracks_];
    const auto kind = static_cast<std::uint32_t>(track.kind);
    std::string payload(reinterpret_cast<const char*>(&kind), sizeof kind);
    payload += track.name;
    queue(RecordKind::track, payload.data(), payload.size());
  }
  for (; num_names_ < names.size(); ++num_names_)
    queue(RecordKind::name, names[num_names_].data(), names[num_names_].size());
}

std::uint64_t TraceWriter::write(const std::vector<Event>& events,
                                 std::uint64_t dropped) {
  const auto events_bytes = events.size() * sizeof(Event);
  if (!full_ && max_bytes_ != 0
      && written_bytes_ + queue_.size() + events_bytes + room_for_counts
           > max_bytes_) {
    log::config.warn(fmt::format("{}: trace.max_gb reached, later events are "
                                 "dropped",
                                 file_.string()));
    full_ = true;
  }
  if (full_) {
    queue_.clear();
    note_lost(dropped);
    return events.size();
  }
  if (!events.empty())
    queue(RecordKind::events, events.data(), events_bytes);
  if (dropped != dropped_written_)
    queue(RecordKind::dropped, &dropped, sizeof dropped);
  dropped_written_ = dropped;
  if (queue_.empty() || write_queue())
    return 0;
  log::config.warn(fmt::format("cannot write {}: {}; later events are dropped",
                               file_.string(), errno_text()));
  full_ = broken_ = true;
  return events.size();
}

void TraceWriter::note_lost(std::uint64_t dropped) {
  if (broken_ || dropped < 2 * dropped_written_ || dropped == 0)
    return;
  queue(RecordKind::dropped, &dropped, sizeof dropped);
  dropped_written_ = dropped;
  write_queue();
}

void TraceWriter::close(std::uint64_t dropped) {
  queue_.clear();
  if (!broken_) { // else the file ends inside a record
    queue(RecordKind::dropped, &dropped, sizeof dropped);
    queue(RecordKind::closed, nullptr, 0);
    write_queue();
  }
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
