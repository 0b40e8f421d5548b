// Collectives of GPUs: NCCL for what stands in their memory, the host's group
// for the rest. Members meet in the host's group before each call, so that
// names, deadlines, aborts and lost peers are its business (I7) and NCCL starts
// only when everybody is there; the call returns when its stream is done.
// Sums have NCCL's order, which is not that of ranks: equal on all ranks, but
// not the bits of other transports.
#pragma once

#include "net/collectives.hpp"
#include "net/nccl_library.hpp"

#include <chrono>
#include <memory>

namespace troupe::net {

struct NcclMember {
  std::shared_ptr<Collectives> host; ///< the same members in the same order
  int device = 0;                    ///< of this process
  std::chrono::milliseconds progress_deadline{0};
};

/// Waits for nobody: the first call with a GPU's memory does.
std::shared_ptr<Collectives> make_nccl_collectives(const NcclMember& member,
                                                   const NcclLibrary& library
                                                   = NcclLibrary::machine());

} // namespace troupe::net
