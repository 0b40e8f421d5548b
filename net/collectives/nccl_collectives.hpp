// Collectives of GPUs: NCCL for data in their memory, the host's group for the
// rest. Members meet in the host's group before each call, so that it handles
// names, deadlines, aborts and lost peers (I7) and NCCL starts only when all
// members have arrived; a call returns when its stream has finished. Calls
// `on_streams` do neither (stream_collectives.hpp). Sums have NCCL's order,
// which is not rank order: equal on all ranks, but with other bits than the
// other transports.
#pragma once

#include "net/collectives/collectives.hpp"
#include "net/collectives/nccl_agreement.hpp"
#include "net/collectives/nccl_library.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace troupe::net {

struct NcclMember {
  std::string group;                 ///< its name, for the log
  std::shared_ptr<Collectives> host; ///< same members in the same order
  int device = 0;                    ///< its number in this process
  std::chrono::milliseconds progress_deadline{0};
  /// Lists what each member has, this one too: the same for all.
  std::vector<NcclOffer> offers;
  /// Returns the stream of the calling thread's kernels; none: the default one.
  std::function<CudaStream()> thread_stream = {};
};

/// Returns the group without waiting. Whether it uses NCCL follows from the
/// offers, and is logged; the first call on GPU memory connects.
std::shared_ptr<Collectives> make_nccl_collectives(const NcclMember& member,
                                                   const NcclLibrary& library
                                                   = NcclLibrary::machine());

} // namespace troupe::net
