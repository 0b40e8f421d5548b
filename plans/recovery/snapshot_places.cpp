#include "plans/recovery/snapshot_places.hpp"

#include <algorithm>
#include <iterator>

namespace troupe::plans {

SnapshotPlaces::SnapshotPlaces(const Replica& replica, const Cluster& cluster)
  : replica_(replica.id),
    cluster_(cluster) {
  std::map<Coordinate, std::size_t> parts; // of equal planes
  for (std::uint32_t i = 0; i < replica.devices.size(); ++i) {
    auto where = coordinate_of(replica.strategy, i);
    if (replica.strategy.zero == Zero::none)
      where.dp %= replica.strategy.expert_group_dp(); // dp ranks hold the same
    const Rank device = replica.devices[i];
    const auto part = parts.try_emplace(where, parts_.size()).first->second;
    if (part == parts_.size())
      parts_.emplace_back();
    part_of_[device] = part;
    // in the order of the mesh: the first dp rank of a node comes first
    parts_[part].try_emplace(cluster.node_of(device), device);
  }
}

Rank SnapshotPlaces::owner(Rank device) const {
  return parts_[part_of_.at(device)].at(cluster_.node_of(device));
}

std::vector<SnapshotPlace>
SnapshotPlaces::places_of(const Holders& holders) const {
  std::vector<SnapshotPlace> places;
  for (const auto& [node, device] : holders)
    places.push_back({cluster_.worker_of(device), replica_, device});
  if (places.size() > 1 || cluster_.nodes == 1)
    return places;
  const WorkerId next{(places[0].worker.value + cluster_.workers_per_node)
                      % cluster_.num_workers()};
  places.push_back({next, replica_, places[0].device, /*is_copy=*/true});
  return places;
}

std::vector<SnapshotPlace> SnapshotPlaces::of(Rank device) const {
  auto places = places_of(parts_[part_of_.at(device)]);
  const auto own
    = std::ranges::find(places, owner(device), &SnapshotPlace::device);
  std::rotate(places.begin(), own, std::next(own));
  return places;
}

std::vector<SnapshotPlace> SnapshotPlaces::all() const {
  std::vector<SnapshotPlace> places;
  for (const auto& holders : parts_)
    std::ranges::copy(places_of(holders), std::back_inserter(places));
  return places;
}

std::vector<SnapshotPlace> SnapshotPlaces::on(WorkerId worker) const {
  auto places = all();
  std::erase_if(places,
                [&](const auto& place) { return place.worker != worker; });
  return places;
}

} // namespace troupe::plans
