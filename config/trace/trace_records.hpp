// Walks the records of a trace that is in memory, for readers that need only
// some of them. Damaged sizes end the walk.
#pragma once

#include "config/trace/trace.hpp"
#include "config/trace/trace_writer.hpp"

#include <cstring>
#include <string_view>

namespace troupe::trace {

/// Calls `take(kind, payload)` for each whole record; the magic of a segment
/// may precede them.
template <class Take>
void for_each_record(std::string_view records, Take&& take) {
  if (records.starts_with(file_magic))
    records.remove_prefix(file_magic.size());
  RecordHead head{};
  while (records.size() >= sizeof head) {
    std::memcpy(&head, records.data(), sizeof head);
    records.remove_prefix(sizeof head);
    if (head.payload_bytes > records.size())
      return;
    take(head.kind, records.substr(0, head.payload_bytes));
    records.remove_prefix(head.payload_bytes);
  }
}

/// Calls `take(event)` for each event in the payload of a record.
template <class Take>
void for_each_event(std::string_view payload, Take&& take) {
  Event event;
  for (; payload.size() >= sizeof event; payload.remove_prefix(sizeof event)) {
    std::memcpy(&event, payload.data(), sizeof event);
    take(event);
  }
}

} // namespace troupe::trace
