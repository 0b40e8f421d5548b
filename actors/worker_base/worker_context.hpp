// State that the actors of one worker process share: the run, its data, the
// stash with its data plane, the device threads. Built once from the master's
// join reply; read-only afterwards except for the parts that are thread-safe
// themselves.
#pragma once

#include "actors/protocol/export_numbers.hpp"
#include "actors/protocol/job_thread.hpp"
#include "actors/worker_base/run_description.hpp"
#include "actors/worker_base/snapshot_memory.hpp"
#include "actors/worker_base/worker_data.hpp"
#include "config/base/atomic_file.hpp"
#include "models/kernels/workspace.hpp"
#include "models/records/rollout_record.hpp"
#include "net/collectives/host_collectives.hpp"
#include "net/collectives/nccl_agreement.hpp"
#include "net/data_plane/data_plane.hpp"
#include "net/data_plane/peer_memory.hpp"
#include "net/data_plane/stash.hpp"

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace troupe::actors {

/// Weights that shards of this process publish for each other, by export
/// number.
class LocalWeights {
public:
  void publish(std::uint64_t id, const net::BlockBytes& plane);
  /// Returns the weights; empty if another process holds them.
  net::BlockBytes find(std::uint64_t id) const;

private:
  mutable std::mutex mutex_;
  std::map<std::uint64_t, net::BlockBytes> planes_;
};

/// Returns the number under which a shard exports a plane (0: weights) to the
/// data plane; bit 59 marks its handle (net::handle_id).
constexpr std::uint64_t export_id(ReplicaId replica, Rank rank,
                                  std::uint8_t plane = 0) {
  return std::uint64_t{plane} << plane_export_bit
         | std::uint64_t{replica.value} << 32 | rank.value;
}

// Defined in the user folder, which needs the context.
class UserActors;
class RewardWork;
// Defined in the agents folder.
class AgentHost;
// Defined in the worker folder.
struct Shard;

/// The loaded shards of one device, which only its thread uses.
using DeviceShards = std::map<ReplicaId, std::weak_ptr<Shard>>;

/// Place of a worker, and what its process has for NCCL.
struct WorkerPlace {
  std::string host;
  std::vector<net::NcclOffer> gpus; ///< by their number in the process
};

/// Access to rows and weights between this process and others.
struct WorkerExchange {
  net::Stash stash;
  std::unique_ptr<net::DataPlane> data_plane;
  net::GroupRegistry groups;
  LocalWeights weights;
  net::PeerMemory peer_memory; ///< weights of other workers on this host
  std::map<WorkerId, WorkerPlace> hosts; ///< of all workers
};

/// The threads that do this worker's jobs, and what those of devices share.
struct WorkerThreads {
  std::map<Rank, std::unique_ptr<JobThread>> devices;
  std::map<Rank, models::Workspaces> workspaces; ///< one set per device
  std::map<Rank, DeviceShards> shards;
  std::unique_ptr<JobThread> host;      ///< for functions and data-set reads
  std::unique_ptr<JobThread> writer;    ///< for checkpoints
  std::unique_ptr<JobThread> snapshots; ///< null: the run makes none
};

struct WorkerContext {
  WorkerContext();
  ~WorkerContext();

  WorkerId worker;
  Incarnation incarnation;
  std::string who; ///< "worker 1 (pid 4711)"
  RunDescription run;
  WorkerData data{run};
  WorkerExchange exchange;
  WorkerThreads threads;
  std::shared_ptr<UserActors> user; ///< thread-safe
  /// Set if the run's rewards need no model, else null; thread-safe.
  std::shared_ptr<RewardWork> rewards;
  /// Set if agents.command leads samples, else null; thread-safe.
  std::shared_ptr<AgentHost> agents;
  std::unique_ptr<SnapshotMemory> snapshots; ///< null: none are made
};

/// Writes files of the run folder by `write`, which returns the bytes of data,
/// and hands them over; returns what was written.
template <class Write>
WriteDone written_by(FileSource& files, Write write) {
  WrittenFiles written;
  WriteDone done{.bytes = write(), .files = {}};
  for (const auto& file : written.take())
    done.files.push_back(
      {files.give(file.path).string(), file.bytes, file.crc32});
  return done;
}

/// Builds the context of a run from a join reply, without threads. Reads no
/// data: the handler of the join reply also answers pings. Throws
/// ConfigError under the same conditions as the master.
std::shared_ptr<WorkerContext> make_worker_context(const JoinReply& join_reply);

} // namespace troupe::actors
