#include "runtime/live/trace_follower.hpp"

#include "config/log.hpp"
#include "config/trace_writer.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace troupe::runtime {

namespace {

/// No writer makes records larger than its rings.
constexpr std::size_t largest_record_bytes = std::size_t{1} << 28;

/// Up to `bytes` more of a file.
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

} // namespace

TraceFollower::TraceFollower(RunFolder folder, std::uint64_t history_bytes)
  : folder_(std::move(folder)),
    history_bytes_(history_bytes) {}

TraceFollower::~TraceFollower() {
  for (const auto& file : files_)
    ::close(file.descriptor);
}

std::vector<std::string> TraceFollower::find_files() {
  std::vector<std::filesystem::path> found;
  std::error_code ignored;
  for (const auto& entry :
       std::filesystem::directory_iterator(folder_.trace_folder(), ignored))
    if (entry.path().extension() == ".events"
        && std::ranges::none_of(files_, [&](const File& file) {
             return file.name == entry.path().filename();
           }))
      found.push_back(entry.path());
  std::ranges::sort(found);
  std::vector<std::string> names;
  for (const auto& path : found) {
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
      continue; // tried again at the next call
    const auto size = std::filesystem::file_size(path, ignored);
    File& file = files_.emplace_back();
    file.name = path.filename();
    file.descriptor = descriptor;
    file.skip_before = size > history_bytes_ ? size - history_bytes_ : 0;
    names.push_back(file.name);
  }
  return names;
}

std::vector<TraceChunk> TraceFollower::read(std::size_t max_bytes) {
  std::vector<TraceChunk> chunks;
  const auto share = std::max<std::size_t>(
    4096, max_bytes / std::max(std::size_t{1}, files_.size()));
  for (std::uint32_t i = 0; i < files_.size(); ++i) {
    File& file = files_[i];
    if (file.broken)
      continue;
    file.pending += read_more(file.descriptor, share);
    if (auto bytes = whole_records(file); !bytes.empty())
      chunks.push_back({i, std::move(bytes)});
  }
  return chunks;
}

/// Takes the whole records off `pending`; returns those that are wanted.
std::string TraceFollower::whole_records(File& file) {
  std::string wanted;
  std::size_t at = 0;
  if (file.parsed == 0) {
    if (file.pending.size() < trace::file_magic.size())
      return wanted;
    file.broken = !file.pending.starts_with(trace::file_magic);
    wanted = trace::file_magic;
    at = wanted.size();
  }
  trace::RecordHead head{};
  while (!file.broken && file.pending.size() - at >= sizeof head) {
    std::memcpy(&head, file.pending.data() + at, sizeof head);
    file.broken = head.payload_bytes > largest_record_bytes;
    const auto size = sizeof head + head.payload_bytes;
    if (file.broken || file.pending.size() - at < size)
      break;
    const bool old = file.parsed + at + size <= file.skip_before;
    if (old && head.kind == trace::RecordKind::events)
      skipped_bytes_ += size;
    else
      wanted.append(file.pending, at, size);
    at += size;
  }
  if (file.broken) {
    log::runtime.warn("trace page: " + file.name + " is no trace file");
    return {};
  }
  file.parsed += at;
  file.pending.erase(0, at);
  return wanted;
}

} // namespace troupe::runtime
