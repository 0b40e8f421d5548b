#include "net/collectives/nccl_agreement.hpp"

#include <algorithm>
#include <vector>

namespace troupe::net {

std::string_view why_no_nccl(Collectives& host, const NcclOffer& mine) {
  constexpr std::size_t words = sizeof(NcclOffer) / sizeof(std::int32_t);
  std::vector<NcclOffer> all(host.size());
  host.all_gather(&mine, all.data(), words, DType::i32, "whether to use NCCL");
  if (!std::ranges::all_of(
        all, [](const NcclOffer& offer) { return offer.has_nccl == 1; }))
    return "a member of the group has no NCCL";
  std::ranges::sort(all, {}, &NcclOffer::gpu);
  if (std::ranges::adjacent_find(all, {}, &NcclOffer::gpu) != all.end())
    return "members of the group share a GPU";
  return {};
}

} // namespace troupe::net
