// Messages of a worker that joins a run: what it says of itself, what it gets
// to know of the run, and who else is there.
#pragma once

#include "actors/protocol/file_messages.hpp"
#include "actors/protocol/session_messages.hpp"
#include "actors/protocol/snapshot_messages.hpp"
#include "net/collectives/nccl_agreement.hpp"

namespace troupe::net {

TROUPE_INSPECT(NcclOffer, x.gpu, x.has_nccl)

} // namespace troupe::net

namespace troupe::actors {

/// Request of a worker to join.
struct JoinRequest {
  std::string token;
  std::string build; ///< version and registry; must equal the master's
  std::string host;  ///< address of its data port
  std::uint16_t data_port = 0;
  std::uint32_t pid = 0;
  std::uint32_t wanted = 0xFFFF'FFFF; ///< number assigned by the launcher
  std::vector<net::NcclOffer> gpus = {};
};
TROUPE_INSPECT(JoinRequest, x.token, x.build, x.host, x.data_port, x.pid,
               x.wanted, x.gpus)

/// The run as a worker needs it; it parses the same texts as the master did.
struct JoinReply {
  WorkerId worker;
  Incarnation incarnation;
  std::string run_id; ///< random; names shared memory and groups
  std::string settings_yaml;
  std::string plan_yaml;
  std::string run_folder;
  std::string data_key; ///< index key of data.train in the run folder
  std::string keeper;   ///< name of the hosts' keepers; empty: no snapshots
  bool only_evaluates = false;
  std::map<std::string, CallRoom> rooms; ///< for calls that generate
  std::uint64_t device_bytes = 0; ///< of each device as the plan has it; 0:
                                  ///< not known, or no GPU
  FileShare files;
};
TROUPE_INSPECT(JoinReply, x.worker, x.incarnation, x.run_id, x.settings_yaml,
               x.plan_yaml, x.run_folder, x.data_key, x.keeper,
               x.only_evaluates, x.rooms, x.device_bytes, x.files)

struct Peer {
  WorkerId worker;
  std::string host;
  std::uint16_t data_port = 0;
  std::vector<net::NcclOffer> gpus = {};
};
TROUPE_INSPECT(Peer, x.worker, x.host, x.data_port, x.gpus)

/// The members of a run, once all workers have joined.
struct SetupOrder {
  std::vector<Peer> peers;
  SnapshotKey snapshot; ///< that all will load, if it has an id
  AgentEndpoint agents;
};
TROUPE_INSPECT(SetupOrder, x.peers, x.snapshot, x.agents)

} // namespace troupe::actors
