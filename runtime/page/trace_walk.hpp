// Looks at the records of a trace file one by one without reading their events:
// a run of gigabytes is passed over in a fraction of a second.
#pragma once

#include "config/trace/trace_writer.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>

namespace troupe::runtime {

struct WalkedRecord {
  trace::RecordKind kind{};
  std::uint64_t bytes = 0;     ///< with its head
  std::uint64_t events = 0;    ///< 0: a record of another kind
  std::uint32_t last_step = 0; ///< of the last event
};

/// Fills `size` bytes from a place in a file; false: it ends before.
bool read_at(int descriptor, std::uint64_t at, void* bytes, std::size_t size);

/// Returns the record that begins at `at`. Nothing: the file ends before its
/// end, or is damaged.
std::optional<WalkedRecord> walk_record(int descriptor, std::uint64_t at);

/// Limit of a record's size: no writer makes records larger than its rings.
inline constexpr std::size_t largest_record_bytes = std::size_t{1} << 28;

} // namespace troupe::runtime
