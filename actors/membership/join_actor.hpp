// The published endpoint of a run: checks a worker's token and binary, assigns
// it a number, sends it the texts it needs, and hands it to the heartbeat. When
// all have joined, `on_full` gets their nodes and addresses.
// Parent: the session, which keeps its handle.
#pragma once

#include "actors/protocol/ask.hpp"

#include <functional>
#include <map>
#include <optional>

namespace troupe::actors {

struct Joined {
  NodeActor node;
  JoinRequest request;
};

struct JoinSetup {
  std::string token;
  std::string build;
  std::uint32_t num_workers = 1;
  JoinReply join_reply; ///< all but the worker's number
  HeartbeatActor heartbeat;
  std::function<void(WorkerId)> on_joined = [](WorkerId) {};
  std::function<void(std::vector<Joined>)> on_full; ///< in order of numbers
};

struct JoinState {
  std::string name = "join";
  JoinSetup setup;
  std::map<std::uint32_t, Joined> joined; ///< by worker number
  std::uint32_t num_answered = 0;
};

JoinActor::behavior_type join_actor(Self<JoinActor, JoinState> self,
                                    JoinSetup setup);

} // namespace troupe::actors
