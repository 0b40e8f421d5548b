// Messages about where the planes of a replica are between its calls.
#pragma once

#include "actors/message_parts.hpp"

namespace troupe::actors {

/// Change where the planes are that leave the device between calls.
struct LifeOrder {
  std::uint8_t kind = 0; ///< plans::TaskKind: reload, offload or drop
  std::string call;      ///< that it is for; none of a drop
  Version version;       ///< that the weights must have (I4)
};
TROUPE_INSPECT(LifeOrder, x.kind, x.call, x.version)

struct LifeDone {
  std::uint64_t device_bytes = 0; ///< of the replica's planes there afterwards
  std::uint64_t begin_ns = 0;
  std::uint64_t busy_ns = 0;
  std::vector<PeakMemory> peaks;
};
TROUPE_INSPECT(LifeDone, x.device_bytes, x.begin_ns, x.busy_ns, x.peaks)

} // namespace troupe::actors
