#include "runtime/call_members.hpp"

#include "config/error.hpp"
#include "plans/own_placement.hpp"

#include <fmt/format.h>

namespace troupe::runtime {

std::vector<actors::Member>
members_of(const RunBasis& basis, const plans::Replica& replica,
           const std::vector<actors::SetupDone>& ready) {
  std::vector<actors::Member> members;
  for (const Rank rank : replica.devices) {
    const auto worker = basis.session.plan.cluster.worker_of(rank);
    for (const auto& entry : ready.at(worker.value).shards)
      if (entry.replica == replica.id && entry.rank == rank)
        members.push_back(
          {entry.shard, {}, worker, fmt::format("device {}", rank.value)});
  }
  TROUPE_CHECK(members.size() == replica.devices.size(),
               "a shard of " + replica.name() + " is missing");
  return members;
}

void place_function(const RunBasis& basis,
                    const std::vector<actors::SetupDone>& ready,
                    actors::CallSetup& setup) {
  const auto& cluster = basis.session.plan.cluster;
  const auto placed = basis.plan.calls.find(setup.call.name);
  const auto placement
    = placed == basis.plan.calls.end() ? plans::Placement{} : placed->second;
  for (std::uint32_t i = 0; i < ready.size(); ++i) {
    const WorkerId worker{i};
    setup.homes.push_back(plans::instances_for(cluster, placement, worker));
    if (setup.homes.back() == worker)
      setup.members.push_back(
        {{}, ready[i].function, worker, fmt::format("worker {}", i)});
  }
}

} // namespace troupe::runtime
