#include "net/collectives/nccl_agreement.hpp"

#include <algorithm>

namespace troupe::net {

std::vector<NcclOffer> nccl_offers(const GpuReport& gpus) {
  if (gpus.ids.empty())
    return {};
  return nccl_offers(gpus, NcclLibrary::machine());
}

std::vector<NcclOffer> nccl_offers(const GpuReport& gpus,
                                   const NcclLibrary& library) {
  std::vector<NcclOffer> offers;
  for (const GpuIdentity& gpu : gpus.ids)
    offers.push_back({gpu, library.why_not.empty()});
  return offers;
}

std::vector<NcclOffer> nccl_offers(std::size_t members, const GpuReport& gpus,
                                   const NcclLibrary& library) {
  const auto each = nccl_offers(gpus, library);
  std::vector<NcclOffer> offers;
  for (std::size_t i = 0; i < members; ++i)
    offers.push_back(each[i % each.size()]);
  return offers;
}

std::string_view why_no_nccl(std::span<const NcclOffer> members) {
  if (!std::ranges::all_of(members, &NcclOffer::has_nccl))
    return "a member of the group has no NCCL";
  std::vector<GpuIdentity> gpus;
  for (const NcclOffer& member : members)
    gpus.push_back(member.gpu);
  std::ranges::sort(gpus);
  if (std::ranges::adjacent_find(gpus) != gpus.end())
    return "members of the group share a GPU";
  return {};
}

} // namespace troupe::net
