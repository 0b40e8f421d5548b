// Messages about snapshots: after a step, devices copy their planes into memory
// that outlives their process; a run that lost a worker continues from there.
#pragma once

#include "actors/protocol/message_parts.hpp"

namespace troupe::actors {

/// A snapshot in the memory of the workers' hosts (net/keeper): one of two
/// slots, which the steps use in turn.
struct SnapshotKey {
  std::uint64_t id = 0; ///< 0: none
  std::uint32_t slot = 0;
};
TROUPE_INSPECT(SnapshotKey, x.id, x.slot)

/// Copies the device's planes into a snapshot.
struct SnapshotOrder {
  SnapshotKey key;
};
TROUPE_INSPECT(SnapshotOrder, x.key)

/// Copies the planes of another node's devices, as far as this worker keeps
/// copies of them, from their host into its own.
struct SnapshotCopyOrder {
  SnapshotKey key;
};
TROUPE_INSPECT(SnapshotCopyOrder, x.key)

struct SnapshotDone {
  std::uint64_t bytes = 0;
  std::string problem; ///< why there is none; empty: it is whole
};
TROUPE_INSPECT(SnapshotDone, x.bytes, x.problem)

/// The note by which a run continues from a snapshot, as its file has it.
struct SnapshotRecordText {
  std::uint64_t id = 0; ///< 0: none
  std::string text;
};
TROUPE_INSPECT(SnapshotRecordText, x.id, x.text)

} // namespace troupe::actors
