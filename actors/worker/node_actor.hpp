// A worker process as one actor: joins the run, spawns the shards and the
// function actor, replies to heartbeats, drops rows at commit, saves and loads
// those of unfinished steps, and stops all work when the run failed. Nothing
// long runs in its handlers, or pings would wait: files are read and rows
// copied on job threads. `on_end` reports to the process's main why it is over.
// Parent: the worker's main; shards and functions end with it.
#pragma once

#include "actors/protocol/open_replies.hpp"
#include "actors/worker_base/worker_context.hpp"
#include "config/base/defaults.hpp"
#include "models/records/row_file.hpp"
#include "net/base/open_files.hpp"

#include <functional>

namespace troupe::actors {

struct NodeSetup {
  JoinActor join_actor;
  std::string master_host; ///< where this process found it
  JoinRequest join;
  /// Created before the run is known: the join request names its port.
  std::unique_ptr<net::DataPlane> data;
  /// Set if no launcher keeps the log: output then goes into the run folder.
  bool keeps_log = false;
  /// Set by the node once it has joined: to be closed at the end.
  std::shared_ptr<FileSource> files;
  /// Called once with nothing (orderly end) or the reason.
  std::function<void(std::optional<Failure>)> on_end;
};

/// The actors of a worker that do its work.
struct WorkerActors {
  std::vector<ShardActor> shards;
  std::vector<LocalMeshActor> local_meshes;
  FunctionActor function;
  AgentHostActor agents; ///< null: the master has no endpoint for them
  /// Open requests of these; they fail when the run does.
  std::shared_ptr<AskTable> asks = std::make_shared<AskTable>();
};

struct NodeState {
  std::string name = "node";
  std::shared_ptr<NodeSetup> setup;
  std::shared_ptr<WorkerContext> worker;
  WorkerActors actors;
  OpenReplies open;
  std::vector<models::StepRows> copied; ///< waiting for their write
  AskTable::Clock::time_point master_heard, last_tick;
  /// cluster.silence_s, once the run is known.
  AskTable::Clock::duration silence_limit = defaults::dead_after;
  net::OpenFilesWatch open_files;
  bool ended = false;
};

NodeActor::behavior_type node_actor(Self<NodeActor, NodeState> self,
                                    std::shared_ptr<NodeSetup> setup);

} // namespace troupe::actors
