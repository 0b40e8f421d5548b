#include "plans/recovery/snapshot_places.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace troupe::plans {
namespace {

/// A replica of `strategy` on devices 0, 1, 2, ...
Replica replica_of(const std::string& strategy) {
  Replica replica{.role = "actor", .home = true, .calls = {"actor_train"}};
  replica.strategy = parse_strategy(strategy);
  for (std::uint32_t i = 0; i < replica.strategy.num_devices(); ++i)
    replica.devices.emplace_back(i);
  return replica;
}

/// A cluster of nodes with a worker for each two devices.
Cluster cluster_of(std::uint32_t nodes, std::uint32_t devices_per_node) {
  return {.nodes = nodes,
          .devices_per_node = devices_per_node,
          .workers_per_node = (devices_per_node + 1) / 2};
}

std::vector<std::uint32_t> owners(const std::string& strategy,
                                  std::uint32_t devices_per_node) {
  const Replica replica = replica_of(strategy);
  const SnapshotPlaces places(replica, cluster_of(2, devices_per_node));
  std::vector<std::uint32_t> all;
  for (const Rank device : replica.devices)
    all.push_back(places.owner(device).value);
  return all;
}

TEST(SnapshotPlaces, TheFirstDpRankOfANodeCopiesForAll) {
  using All = std::vector<std::uint32_t>;
  EXPECT_EQ(owners("d4", 8), (All{0, 0, 0, 0}));
  EXPECT_EQ(owners("d4", 2), (All{0, 0, 2, 2})) << "once on each node";
  EXPECT_EQ(owners("d2t2", 8), (All{0, 1, 0, 1}));
  EXPECT_EQ(owners("d2z1", 8), (All{0, 1})) << "moments are cut";
  EXPECT_EQ(owners("d2z3", 8), (All{0, 1})) << "weights too";
  EXPECT_EQ(owners("p2", 8), (All{0, 1}));
}

TEST(SnapshotPlaces, OneNodeHasNoCopies) {
  for (const auto& place :
       SnapshotPlaces(replica_of("d2t2"), cluster_of(1, 4)).all())
    EXPECT_FALSE(place.is_copy);
}

TEST(SnapshotPlaces, ACopyIsWithTheSameWorkerOfTheNextNode) {
  const SnapshotPlaces places(replica_of("t8"), cluster_of(2, 4));
  const std::vector<SnapshotPlace> first{
    {.worker = WorkerId{1}, .device = Rank{2}},
    {.worker = WorkerId{3}, .device = Rank{2}, .is_copy = true}};
  EXPECT_EQ(places.of(Rank{2}), first);
  const std::vector<SnapshotPlace> last{
    {.worker = WorkerId{2}, .device = Rank{5}},
    {.worker = WorkerId{0}, .device = Rank{5}, .is_copy = true}};
  EXPECT_EQ(places.of(Rank{5}), last) << "the first node is after the last";
}

TEST(SnapshotPlaces, WhatAnotherNodeHoldsAnywayIsNotCopied) {
  const SnapshotPlaces places(replica_of("d4"), cluster_of(2, 2));
  const std::vector<SnapshotPlace> own_first{
    {.worker = WorkerId{1}, .device = Rank{2}},
    {.worker = WorkerId{0}, .device = Rank{0}}};
  EXPECT_EQ(places.of(Rank{3}), own_first);
}

/// Returns the devices whose planes are on no other node than `lost`.
std::vector<Rank> lost_with(std::uint32_t lost, const Replica& replica,
                            const Cluster& cluster) {
  const SnapshotPlaces places(replica, cluster);
  std::vector<Rank> gone;
  for (const Rank device : replica.devices)
    if (std::ranges::all_of(places.of(device), [&](const auto& place) {
          return place.worker.value / cluster.workers_per_node == lost;
        }))
      gone.push_back(device);
  return gone;
}

TEST(SnapshotPlaces, AfterTheLossOfAnyNodeAllPlanesAreLeft) {
  for (const std::string strategy :
       {"d8", "t8", "d2p4", "d2p2t2", "d8z1", "d4t2z3", "d1"})
    for (const std::uint32_t nodes : {2, 4})
      for (std::uint32_t lost = 0; lost < nodes; ++lost)
        EXPECT_EQ(
          lost_with(lost, replica_of(strategy), cluster_of(nodes, 8 / nodes)),
          std::vector<Rank>{})
          << strategy << " without node " << lost << " of " << nodes;
}

TEST(SnapshotPlaces, AreTheSameByDeviceAndByWorker) {
  const Replica replica = replica_of("d2p2t2");
  const auto cluster = cluster_of(2, 4);
  const SnapshotPlaces places(replica, cluster);
  std::vector<SnapshotPlace> by_worker;
  for (std::uint32_t i = 0; i < cluster.num_workers(); ++i)
    for (const auto& place : places.on(WorkerId{i})) {
      EXPECT_EQ(place.worker, WorkerId{i});
      by_worker.push_back(place);
    }
  EXPECT_EQ(by_worker.size(), places.all().size());
  for (const Rank device : replica.devices) {
    const auto found = places.of(device);
    EXPECT_EQ(found[0].device, places.owner(device));
    for (const auto& place : found)
      EXPECT_NE(std::ranges::find(by_worker, place), by_worker.end());
  }
}

} // namespace
} // namespace troupe::plans
