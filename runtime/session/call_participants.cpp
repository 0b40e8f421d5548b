#include "runtime/session/call_participants.hpp"

#include "actors/protocol/device_names.hpp"
#include "config/base/error.hpp"
#include "plans/workflow/user_placement.hpp"

namespace troupe::runtime {

std::vector<actors::LocalMesh>
local_meshes_of(const plans::Replica& replica,
                const std::vector<actors::SetupDone>& ready) {
  std::map<Rank, std::size_t> places;
  for (std::size_t i = 0; i < replica.devices.size(); ++i)
    places[replica.devices[i]] = i;
  std::vector<actors::LocalMesh> local_meshes;
  std::size_t num_devices = 0;
  for (std::uint32_t i = 0; i < ready.size(); ++i)
    for (const auto& entry : ready[i].local_meshes) {
      if (entry.replica != replica.id)
        continue;
      auto& local_mesh = local_meshes.emplace_back(actors::LocalMesh{
        entry.local_mesh, WorkerId{i}, actors::device_names(entry.ranks), {}});
      for (const Rank rank : entry.ranks)
        local_mesh.members.push_back(places.at(rank));
      num_devices += entry.ranks.size();
    }
  TROUPE_CHECK(num_devices == replica.devices.size(),
               "a shard of " + replica.name() + " is missing");
  return local_meshes;
}

std::map<ReplicaId, actors::Writer>
writers_of(const plans::Replicas& replicas,
           const std::vector<actors::SetupDone>& ready) {
  std::map<ReplicaId, actors::Writer> writers;
  for (std::uint32_t i = 0; i < ready.size(); ++i)
    for (const auto& entry : ready[i].writers)
      writers[entry.replica]
        = {entry.shard, WorkerId{i},
           actors::device_names({replicas[entry.replica].devices.front()})};
  return writers;
}

void place_function(const RunBasis& basis,
                    const std::vector<actors::SetupDone>& ready,
                    actors::CallSetup& setup) {
  const auto& cluster = basis.run.work.plan.cluster;
  const auto placed = basis.plan.calls.find(setup.call.name);
  const auto placement
    = placed == basis.plan.calls.end() ? plans::Placement{} : placed->second;
  for (std::uint32_t i = 0; i < ready.size(); ++i) {
    const WorkerId worker{i};
    setup.homes.push_back(plans::instances_for(cluster, placement, worker));
    if (setup.homes.back() == worker)
      setup.members.push_back({ready[i].function, worker});
  }
}

} // namespace troupe::runtime
