#include "runtime/page/trace_walk.hpp"

#include <unistd.h>

namespace troupe::runtime {

bool read_at(int descriptor, std::uint64_t at, void* bytes, std::size_t size) {
  return ::pread(descriptor, bytes, size, static_cast<off_t>(at))
         == static_cast<ssize_t>(size);
}

std::optional<WalkedRecord> walk_record(int descriptor, std::uint64_t at) {
  trace::RecordHead head{};
  if (!read_at(descriptor, at, &head, sizeof head)
      || head.payload_bytes > largest_record_bytes)
    return std::nullopt;
  WalkedRecord record{head.kind, sizeof head + head.payload_bytes};
  char last_byte = 0;
  if (head.kind != trace::RecordKind::events) {
    if (!read_at(descriptor, at + record.bytes - 1, &last_byte, 1))
      return std::nullopt;
    return record;
  }
  record.events = head.payload_bytes / sizeof(trace::Event);
  trace::Event last;
  if (record.events != 0
      && !read_at(descriptor,
                  at + sizeof head + (record.events - 1) * sizeof last, &last,
                  sizeof last))
    return std::nullopt;
  record.last_step = last.step;
  return record;
}

} // namespace troupe::runtime
