// Collectives of GPUs: NCCL for data in their memory, the host's group for the
// rest. Members meet in the host's group before each call, so that it handles
// names, deadlines, aborts and lost peers (I7) and NCCL starts only when all
// members have arrived; a call returns when its stream has finished. Sums have
// NCCL's order, which is not rank order: equal on all ranks, but with other
// bits than the other transports.
#pragma once

#include "net/collectives/collectives.hpp"
#include "net/collectives/nccl_library.hpp"

#include <chrono>
#include <memory>

namespace troupe::net {

struct NcclMember {
  std::shared_ptr<Collectives> host; ///< same members in the same order
  int device = 0;                    ///< device of this process
  std::chrono::milliseconds progress_deadline{0};
};

/// Returns the group without waiting; the first call on GPU memory connects.
std::shared_ptr<Collectives> make_nccl_collectives(const NcclMember& member,
                                                   const NcclLibrary& library
                                                   = NcclLibrary::machine());

} // namespace troupe::net
