// The places of the planes of a snapshot, as arithmetic. A host can be lost
// with all its memory, so planes that no other node holds are copied: each
// worker also keeps what the worker at its position on the node before keeps.
// Whichever node is lost, a whole snapshot is left. On one node nothing is
// copied.
#pragma once

#include "plans/weights/replicas.hpp"

#include <cstdint>
#include <map>
#include <vector>

namespace troupe::plans {

/// Planes of a replica in the memory of one worker's host.
struct SnapshotPlace {
  WorkerId worker;
  ReplicaId replica;
  Rank device;          ///< of the replica, which wrote them
  bool is_copy = false; ///< whether that device is on another node

  bool operator==(const SnapshotPlace&) const = default;
};

/// The places of one replica's planes.
class SnapshotPlaces {
public:
  SnapshotPlaces(const Replica& replica, const Cluster& cluster);

  /// Returns the device whose planes `device` loads: on one node the dp ranks
  /// of a replica without ZeRO hold the same, so the first of them copies for
  /// all.
  Rank owner(Rank device) const;
  /// Returns the places of the planes that `device` loads, on its own host
  /// first.
  std::vector<SnapshotPlace> of(Rank device) const;
  /// Returns each place of all planes once.
  std::vector<SnapshotPlace> all() const;
  /// Returns those of a worker.
  std::vector<SnapshotPlace> on(WorkerId worker) const;

private:
  /// Devices that hold equal planes, by node the one that copies them.
  using Holders = std::map<std::uint32_t, Rank>;

  std::vector<SnapshotPlace> places_of(const Holders& holders) const;

  ReplicaId replica_;
  Cluster cluster_;
  std::vector<Holders> parts_;
  std::map<Rank, std::size_t> part_of_; ///< index by device
};

} // namespace troupe::plans
