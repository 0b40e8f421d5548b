// One device's part of one replica. Event-based and always responsive: the work
// itself goes to the device thread and comes back as a message. Refuses work of
// an older incarnation or for another version than it has (I4).
// Parent: the node actor; queued work is dropped when the node aborts.
#pragma once

#include "actors/worker/chunk_inbox.hpp"
#include "actors/worker_base/row_gather.hpp"
#include "models/engine/engine.hpp"
#include "models/engine/snapshot.hpp"
#include "models/parallel/weight_move.hpp"
#include "models/servers/served_generation.hpp"

namespace troupe::actors {

struct ShardSetup {
  std::shared_ptr<WorkerContext> worker;
  ReplicaId replica;
  Rank rank;
};

// Defined in move_exchange.hpp.
class MoveExchange;

/// The replicas of a move.
struct MoveEnds {
  ReplicaId source;
  ReplicaId target;
  auto operator<=>(const MoveEnds&) const = default;
};

/// Moves to one device, each compiled once.
struct CompiledMoves {
  std::map<ReplicaId, models::WeightMove> weights; ///< by source replica
  /// Parts between hosts, of moves from and to it; null: they have none.
  std::map<MoveEnds, std::shared_ptr<MoveExchange>> exchanges;
  /// Those that gather a plane of the whole model.
  std::map<models::Plane, models::WeightMove> whole;
};

/// The state that the device thread works on; only its jobs touch it after
/// `load`, one at a time.
struct Shard {
  std::shared_ptr<WorkerContext> worker;
  plans::Replica replica;
  Rank rank;
  Coordinate where;
  JobThread* device = nullptr;
  std::unique_ptr<models::Engine> engine;
  models::Groups groups; ///< per mesh axis
  /// The server that generates instead; made by the first call that needs it.
  std::unique_ptr<models::ServedGeneration> served;
  /// Number of calls that need each plane now; the last one to end offloads it.
  std::map<models::Plane, std::uint32_t> users;
  /// Weights of the checkpoint in progress: the device thread fills it, then
  /// the writer thread reads it (one save at a time).
  models::Snapshot snapshot;
  std::vector<std::unique_ptr<net::MemoryHandle>> places; ///< handles of
                                                          ///< published planes
  CompiledMoves moves;
};

struct ShardState {
  std::string name;
  std::shared_ptr<Shard> shard;
  RowInbox inbox;
  ChunkInbox chunks;
  OpenReplies open;
  Version version;
  bool loaded = false; ///< whether it has any version
};

ShardActor::behavior_type shard_actor(Self<ShardActor, ShardState> self,
                                      ShardSetup setup);

} // namespace troupe::actors
