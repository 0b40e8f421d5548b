// The published door of a run: checks a worker's token and binary, gives it a
// number and the texts it needs, and hands it to the heartbeat. When all are
// there, `on_full` gets their nodes and addresses.
// Parent: the session, which keeps its handle.
#pragma once

#include "actors/ask.hpp"

#include <functional>
#include <map>
#include <optional>

namespace troupe::actors {

struct Joined {
  NodeActor node;
  JoinRequest request;
};

struct LobbySetup {
  std::string token;
  std::string build;
  std::uint32_t num_workers = 1;
  Welcome welcome; ///< all but the worker's number
  HeartbeatActor heartbeat;
  std::function<void(std::vector<Joined>)> on_full; ///< in order of numbers
};

struct LobbyState {
  std::string name = "lobby";
  LobbySetup setup;
  std::map<std::uint32_t, Joined> joined; ///< by worker number
  std::uint32_t num_answered = 0;
};

LobbyActor::behavior_type lobby_actor(Self<LobbyActor, LobbyState> self,
                                      LobbySetup setup);

/// Compares without leaking by its time where the first difference is.
bool same_token(const std::string& a, const std::string& b);

} // namespace troupe::actors
