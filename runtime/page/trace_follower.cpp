#include "runtime/page/trace_follower.hpp"

#include "config/base/log.hpp"
#include "config/trace/trace_records.hpp"
#include "runtime/page/trace_walk.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

namespace troupe::runtime {

namespace {

/// Bytes of old events before the wanted ones that are read, to know their last
/// step; of older ones, only the last event of each record is.
constexpr std::uint64_t exact_bytes = std::uint64_t{4} << 20;
/// Old records per call that are passed over: 0.1 s.
constexpr int most_passed = 1 << 16;

/// Reads up to `bytes` more of a file.
std::string read_more(int descriptor, std::size_t bytes) {
  std::string text(bytes, '\0');
  std::size_t filled = 0;
  while (filled < bytes) {
    const auto got = ::read(descriptor, text.data() + filled, bytes - filled);
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      break;
    filled += static_cast<std::size_t>(got);
  }
  text.resize(filled);
  return text;
}

/// Adds the events of a record to those that are left out.
void count_events(std::string_view payload, trace::EarlierRecord& earlier) {
  trace::for_each_event(payload, [&](const trace::Event& event) {
    ++earlier.events;
    earlier.last_step = std::max(earlier.last_step, event.step);
  });
}

} // namespace

TraceFollower::TraceFollower(RunFolder folder, std::uint64_t history_bytes)
  : folder_(std::move(folder)),
    history_bytes_(history_bytes) {}

TraceFollower::TraceFollower(RunFolder folder, TraceWindow window)
  : folder_(std::move(folder)),
    window_(std::move(window)) {}

TraceFollower::~TraceFollower() {
  for (const auto& file : files_)
    if (file.descriptor >= 0)
      ::close(file.descriptor);
}

std::vector<std::string> TraceFollower::find_files() {
  std::vector<std::string> names;
  for (const auto& trace : trace::list_traces(folder_.trace_folder())) {
    auto known = std::ranges::find(files_, trace.name, &File::name);
    const bool found = known != files_.end();
    if (!found) {
      known = files_.emplace(files_.end());
      known->name = trace.name;
      names.push_back(trace.name);
    }
    if (!window_)
      find_segments(*known, trace);
    else if (!found)
      find_part(*known, trace);
    if (!found)
      open_next(*known);
  }
  return names;
}

/// Adds the segments that appeared since the last look. For a new trace, all
/// segments whose events are older than the wanted history are skipped as a
/// whole: the next one has all names, and the number of events before it.
void TraceFollower::find_segments(File& file,
                                  const trace::SegmentedTrace& trace) {
  const bool is_new = file.segment == 0 && file.later.empty();
  const auto known
    = file.later.empty() ? file.segment : file.later.back().number;
  std::vector<std::uint64_t> sizes;
  for (const auto& segment : trace.segments) {
    if (segment.number <= known)
      continue;
    if (const auto size = add_next(file, segment))
      sizes.push_back(*size);
  }
  if (!is_new || file.unread <= history_bytes_)
    return;
  auto too_many = file.unread - history_bytes_;
  for (const auto size : sizes) {
    if (size > too_many || file.later.size() == 1)
      break;
    too_many -= size;
    file.unread -= size;
    skipped_bytes_ += size;
    file.later.pop_front();
  }
  file.skip_before = too_many;
}

std::optional<std::uint64_t>
TraceFollower::add_next(File& file, const trace::Segment& segment) {
  std::error_code error;
  const auto size = std::filesystem::file_size(segment.path, error);
  if (error)
    return std::nullopt;
  file.later.push_back(segment);
  file.unread += size;
  return size;
}

/// Takes the segments of a new trace in which its part of the window is.
void TraceFollower::find_part(File& file, const trace::SegmentedTrace& trace) {
  const auto part = window_->parts.find(trace.name);
  if (part == window_->parts.end())
    return;
  for (const auto& segment : trace.segments)
    if (segment.number >= part->second.segment
        && segment.number <= part->second.end_segment)
      add_next(file, segment);
  if (!file.later.empty() && file.later.front().number == part->second.segment)
    file.skip_before = part->second.begin;
  file.part = part->second;
}

/// Returns how many bytes of the segment that is read are before the end of
/// the window.
std::uint64_t TraceFollower::bytes_before_end(const File& file) const {
  if (!window_ || file.segment < file.part.end_segment)
    return std::numeric_limits<std::uint64_t>::max();
  const auto at = file.parsed + file.pending.size();
  return file.part.end - std::min(file.part.end, at);
}

/// Continues with the next segment that still exists. The rest of this one is
/// the cut end that a killed process leaves.
bool TraceFollower::open_next(File& file) {
  while (!file.later.empty()) {
    const auto next = file.later.front();
    file.later.pop_front();
    const int descriptor = ::open(next.path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
      continue;
    if (file.descriptor >= 0) {
      ::close(file.descriptor);
      file.skip_before = 0;
    }
    file.descriptor = descriptor;
    file.segment = next.number;
    file.parsed = 0;
    file.pending.clear();
    return true;
  }
  return false;
}

std::vector<TraceChunk> TraceFollower::read(std::size_t max_bytes) {
  std::vector<TraceChunk> chunks;
  const auto share = std::max<std::size_t>(
    4096, max_bytes / std::max(std::size_t{1}, files_.size()));
  for (std::uint32_t i = 0; i < files_.size(); ++i)
    read_file(files_[i], i, share, chunks);
  return chunks;
}

void TraceFollower::read_file(File& file, std::uint32_t number,
                              std::size_t max_bytes,
                              std::vector<TraceChunk>& chunks) {
  if (file.descriptor < 0 && !open_next(file)) {
    file.unread = 0;
    return;
  }
  if (auto bytes = pass_old(file); !bytes.empty())
    chunks.push_back({number, std::move(bytes)});
  for (auto left = max_bytes;
       left > 0 && !file.broken && !is_at_old_events(file);) {
    const auto wanted = std::min<std::uint64_t>(left, bytes_before_end(file));
    const auto more = read_more(file.descriptor, wanted);
    const bool at_end = more.size() < left;
    left -= more.size();
    file.unread -= std::min<std::uint64_t>(file.unread, more.size());
    file.pending += more;
    if (auto bytes = whole_records(file); !bytes.empty())
      chunks.push_back({number, std::move(bytes)});
    // a later segment was found before this read: nothing more is appended here
    if (at_end && !open_next(file)) {
      file.unread = 0;
      return;
    }
  }
}

std::uint64_t TraceFollower::unread_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& file : files_)
    if (!file.broken)
      bytes += std::max<std::uint64_t>(file.unread, !file.later.empty());
  return bytes;
}

/// Returns whether what comes next is so old that it need not be read.
bool TraceFollower::is_at_old_events(const File& file) {
  return file.parsed != 0 && file.parsed + exact_bytes < file.skip_before;
}

/// Passes over old events without reading them; returns the other records
/// between them. What was read of them in advance is forgotten.
std::string TraceFollower::pass_old(File& file) {
  std::string wanted;
  if (!is_at_old_events(file))
    return wanted;
  const auto before = file.parsed;
  file.unread += file.pending.size();
  file.pending.clear();
  for (int passed = 0; passed < most_passed && is_at_old_events(file); ++passed)
    if (!pass_record(file, wanted))
      file.skip_before = 0; // it is damaged: see what can be read
  file.unread -= std::min(file.unread, file.parsed - before);
  ::lseek(file.descriptor, static_cast<off_t>(file.parsed), SEEK_SET);
  return wanted;
}

/// Passes over one record: events are counted, others appended to `wanted`.
/// False: it is not whole.
bool TraceFollower::pass_record(File& file, std::string& wanted) {
  const auto record = walk_record(file.descriptor, file.parsed);
  if (!record)
    return false;
  if (record->kind != trace::RecordKind::events) {
    std::string bytes(record->bytes, '\0');
    if (!read_at(file.descriptor, file.parsed, bytes.data(), bytes.size()))
      return false;
    take_record(file, bytes, wanted);
  } else {
    file.earlier.events += record->events;
    file.earlier.last_step
      = std::max(file.earlier.last_step, record->last_step);
    file.left_out |= record->events != 0;
    skipped_bytes_ += record->bytes;
  }
  file.parsed += record->bytes;
  return true;
}

/// Removes the whole records from `pending`; returns those that are wanted.
std::string TraceFollower::whole_records(File& file) {
  std::string wanted;
  std::size_t at = 0;
  if (file.parsed == 0) {
    if (file.pending.size() < trace::file_magic.size())
      return wanted;
    file.broken = !file.pending.starts_with(trace::file_magic);
    wanted = trace::file_magic;
    file.parsed = at = wanted.size();
  }
  trace::RecordHead head{};
  while (!file.broken && file.pending.size() - at >= sizeof head) {
    std::memcpy(&head, file.pending.data() + at, sizeof head);
    file.broken = head.payload_bytes > largest_record_bytes;
    const auto size = sizeof head + head.payload_bytes;
    if (file.broken || file.pending.size() - at < size)
      break;
    take_record(file, std::string_view(file.pending).substr(at, size), wanted);
    file.parsed += size;
    at += size;
  }
  if (file.broken) {
    log::runtime.warn("trace page: " + file.name + " is no trace file");
    return {};
  }
  file.pending.erase(0, at);
  return wanted;
}

/// Appends the record at `parsed` to `wanted`, or counts what it leaves out.
void TraceFollower::take_record(File& file, std::string_view record,
                                std::string& wanted) {
  trace::RecordHead head{};
  std::memcpy(&head, record.data(), sizeof head);
  const auto payload = record.substr(sizeof head);
  if (head.kind == trace::RecordKind::earlier
      && payload.size() >= sizeof file.earlier)
    std::memcpy(&file.earlier, payload.data(), sizeof file.earlier);
  const bool events = head.kind == trace::RecordKind::events;
  if (events && file.parsed + record.size() <= file.skip_before) {
    skipped_bytes_ += record.size();
    count_events(payload, file.earlier);
    file.left_out = true;
    return;
  }
  if (events && std::exchange(file.left_out, false)) {
    const trace::RecordHead told{trace::RecordKind::earlier,
                                 sizeof file.earlier};
    wanted.append(reinterpret_cast<const char*>(&told), sizeof told);
    wanted.append(reinterpret_cast<const char*>(&file.earlier),
                  sizeof file.earlier);
  }
  wanted += record;
}

} // namespace troupe::runtime
