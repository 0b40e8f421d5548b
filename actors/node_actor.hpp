// A worker process as one actor: joins the run, spawns the shards and the
// function actor, answers heartbeats, drops rows at commit, saves and loads
// those of unfinished steps, and stops what runs when somebody failed. `on_end`
// tells the process's main why it is over. Parent: the worker's main; shards
// and functions end with it.
#pragma once

#include "actors/open_answers.hpp"
#include "actors/worker_context.hpp"
#include "config/defaults.hpp"
#include "models/row_file.hpp"
#include "net/open_files.hpp"

#include <functional>

namespace troupe::actors {

struct NodeSetup {
  LobbyActor lobby;
  JoinRequest join;
  /// Made before the run is known: the join request names its port.
  std::unique_ptr<net::DataPlane> data;
  /// No launcher does: what it has to say goes into the run folder.
  bool keeps_log = false;
  /// Called once with nothing (orderly end) or the reason.
  std::function<void(std::optional<Failure>)> on_end;
};

struct NodeState {
  std::string name = "node";
  std::shared_ptr<NodeSetup> setup;
  std::shared_ptr<WorkerContext> worker;
  std::vector<ShardActor> shards;
  FunctionActor function;
  OpenAnswers open;
  std::vector<models::StepRows> copied; ///< wait for their write
  AskTable::Clock::time_point master_heard, last_tick;
  /// cluster.silence_s, once the run is known.
  AskTable::Clock::duration silence_limit = defaults::dead_after;
  net::OpenFilesWatch open_files;
  bool ended = false;
};

NodeActor::behavior_type node_actor(Self<NodeActor, NodeState> self,
                                    std::shared_ptr<NodeSetup> setup);

} // namespace troupe::actors
