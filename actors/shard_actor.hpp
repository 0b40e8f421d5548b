// One device's part of one replica. Event-based and always answering: the work
// itself goes to the device thread and comes back as a message. Refuses work of
// an older incarnation or for another version than it has (I4).
// Parent: the node actor; queued work is dropped when the node aborts.
#pragma once

#include "actors/chunk_inbox.hpp"
#include "actors/row_gather.hpp"
#include "models/engine.hpp"
#include "models/snapshot.hpp"
#include "models/weight_move.hpp"

namespace troupe::actors {

struct ShardSetup {
  std::shared_ptr<WorkerContext> worker;
  ReplicaId replica;
  Rank rank;
};

/// The part that the device thread works on; only its jobs touch it after
/// `load`, one at a time.
struct Shard {
  std::shared_ptr<WorkerContext> worker;
  plans::Replica replica;
  Rank rank;
  Coordinate where;
  DeviceThread* device = nullptr;
  std::unique_ptr<models::Engine> engine;
  models::Groups groups; ///< of the mesh axes
  /// Calls that want the planes now, by plane: the last one that goes takes
  /// them along.
  std::map<models::Plane, std::uint32_t> users;
  /// Of the checkpoint under way: the device thread fills it, then the writer
  /// thread reads it (one save at a time).
  models::Snapshot snapshot;
  std::vector<std::unique_ptr<net::MemoryPlace>> places; ///< exported
  /// Moves of weights to this device, by source replica (compiled once).
  std::map<ReplicaId, models::WeightMove> moves;
  /// Copies of the replica's planes as a whole model, likewise.
  std::map<models::Plane, models::WeightMove> whole;
};

struct ShardState {
  std::string name;
  std::shared_ptr<Shard> shard;
  RowInbox inbox;
  ChunkInbox chunks;
  OpenAnswers open;
  Version version;
  bool loaded = false; ///< has a version at all
};

ShardActor::behavior_type shard_actor(Self<ShardActor, ShardState> self,
                                      ShardSetup setup);

} // namespace troupe::actors
