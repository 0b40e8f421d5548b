// A worker's sessions for the master's endpoint: answers the requests that it
// passes on, hands sessions out, and tells it which there are. Sessions are
// told of by threads that wait until the master knows their keys, or a program
// might ask before. Parent: the node.
#pragma once

#include "actors/agents/agent_host.hpp"
#include "actors/protocol/open_replies.hpp"
#include "actors/protocol/session_messages.hpp"

#include <deque>
#include <future>

namespace troupe::actors {

/// Sessions that the master has not been told of yet. Thread-safe.
class NewSessions {
public:
  struct Entry {
    std::string key;
    bool waits = false;
    /// Set once the master knows it, or will not.
    std::shared_ptr<std::promise<std::optional<Failure>>> known;
  };
  void put(Entry entry);
  Entry take();

private:
  std::mutex mutex_;
  std::deque<Entry> entries_;
};

struct AgentHostSetup {
  std::shared_ptr<AgentHost> host;
  WorkerId worker;
  AgentEndpoint master;
  Incarnation incarnation;
  std::shared_ptr<AskTable> asks;
  std::shared_ptr<NewSessions> new_sessions = std::make_shared<NewSessions>();
};

struct AgentHostState {
  std::string name = "agents";
  AgentHostSetup setup;
  Asks asks;
  OpenReplies open;
};

AgentHostActor::behavior_type
agent_host_actor(Self<AgentHostActor, AgentHostState> self,
                 AgentHostSetup setup);

/// Makes the worker's endpoint for agents, if the run has any, and connects it
/// with the master's. Returns null if there are not both.
AgentHostActor make_agents(caf::actor_system& system, WorkerContext& worker,
                           const AgentEndpoint& master,
                           std::shared_ptr<AskTable> asks);

} // namespace troupe::actors
