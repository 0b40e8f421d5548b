// The requests of programs at the master's endpoint (agents.port): passes each
// on to the worker that has the session of its key, and hands sessions that
// wait out to those who show the run's token for agents. Requests come from the
// endpoint's thread. Parent: the endpoint.
#pragma once

#include "actors/protocol/ask.hpp"
#include "models/agents/open_sessions.hpp"
#include "net/http_server/api_server.hpp"

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace troupe::actors {

/// A request with the way of its answer.
struct ProgramVisit {
  net::ApiCall call;
  net::ApiServer::Answer answer;
};

/// State that the endpoint's thread and the actor share. Thread-safe.
class EndpointShare {
public:
  explicit EndpointShare(std::string token) : token_(std::move(token)) {}

  void put(ProgramVisit visit);
  ProgramVisit take();
  /// Returns whether a key is a session's, or the token.
  bool knows(const std::string& key) const;
  bool is_token(const std::string& key) const;
  /// Runs `body` on the sessions of the run.
  template <class Body>
  auto with(Body body) {
    const std::lock_guard lock(mutex_);
    return body(sessions_);
  }

private:
  const std::string token_;
  mutable std::mutex mutex_;
  std::deque<ProgramVisit> visits_; ///< guarded, like the next
  models::OpenSessions sessions_;
};

struct SessionsSetup {
  std::shared_ptr<EndpointShare> share;
  std::string base_url;                ///< where programs find the endpoint
  std::chrono::milliseconds within{0}; ///< of one answer
  Incarnation incarnation;
  std::shared_ptr<AskTable> asks;
};

struct SessionsState {
  /// A program that waits for a session.
  struct Waiting {
    net::ApiServer::Answer answer;
    AskTable::Clock::time_point until;
  };

  std::string name = "sessions";
  SessionsSetup setup;
  Asks asks;
  std::map<WorkerId, AgentHostActor> hosts;
  std::deque<Waiting> waiting; ///< in order of arrival
  bool looks = false;          ///< whether a tick will come
};

SessionsActor::behavior_type
sessions_actor(Self<SessionsActor, SessionsState> self, SessionsSetup setup);

} // namespace troupe::actors
