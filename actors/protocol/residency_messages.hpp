// Messages about the residency of a replica's planes between its calls.
#pragma once

#include "actors/protocol/message_parts.hpp"
#include "plans/schedule/step_graph.hpp"

namespace troupe::actors {

/// Changes the residency of the planes that leave the device between calls.
struct ResidencyOrder {
  plans::TaskKind kind{}; ///< reload, offload or drop
  std::string call;       ///< call that needs the planes; empty: a drop
  Version version;        ///< version that the weights must have (I4)
};
TROUPE_INSPECT(ResidencyOrder, x.kind, x.call, x.version)

struct ResidencyDone {
  std::uint64_t device_bytes = 0; ///< size of the replica's planes there
                                  ///< afterwards
  std::uint64_t begin_ns = 0;
  std::uint64_t busy_ns = 0;
  std::vector<PeakMemory> peaks;
};
TROUPE_INSPECT(ResidencyDone, x.device_bytes, x.begin_ns, x.busy_ns, x.peaks)

} // namespace troupe::actors
