// Members of a group join over NCCL if all of them have it, and each has a GPU
// that no other member has. Workers say what they have as they join a run, so
// that all members know it before a group's first call.
#pragma once

#include "net/base/gpus.hpp"
#include "net/collectives/nccl_library.hpp"

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace troupe::net {

/// A member's part of the agreement.
struct NcclOffer {
  GpuIdentity gpu{}; ///< of its device
  bool has_nccl = false;
};

/// Returns what a process has, by GPU. NCCL is looked for if there are any.
std::vector<NcclOffer> nccl_offers(const GpuReport& gpus);
std::vector<NcclOffer> nccl_offers(const GpuReport& gpus,
                                   const NcclLibrary& library);

/// Returns what members of this process can offer, its GPUs in turn.
std::vector<NcclOffer> nccl_offers(std::size_t members, const GpuReport& gpus,
                                   const NcclLibrary& library
                                   = NcclLibrary::machine());

/// Returns why a group of these members, in any order, cannot use NCCL; empty:
/// it can.
std::string_view why_no_nccl(std::span<const NcclOffer> members);

} // namespace troupe::net
