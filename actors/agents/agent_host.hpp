// The endpoint of a worker for the programs of its sessions: an HTTP server on
// the loopback address that speaks OpenAI's protocol. Whoever has a session's
// key talks to that session; nobody else gets anything.
// Owner: the worker's context; it starts at the first session.
#pragma once

#include "actors/agents/agent_session.hpp"

#include <map>

namespace troupe::actors {

struct WorkerContext;

/// Numbers of sessions for metrics.
struct AgentCounts {
  std::uint64_t sessions = 0;
  std::uint64_t failed = 0;  ///< for good
  std::uint64_t retries = 0; ///< attempts after the first
  std::uint64_t answers = 0;
  std::uint64_t unused_answers = 0; ///< not in the branch that is trained on

  void add(const AgentCounts& more);
};

class AgentHost {
public:
  /// `port` 0: any free one.
  AgentHost(std::string who, std::uint16_t port)
    : who_(std::move(who)),
      port_(port) {}

  // -- thread-safe --
  /// Starts the endpoint if it has not been. Throws FailureError (io): port in
  /// use.
  void start();
  /// Returns "http://127.0.0.1:4711/v1".
  std::string url() const;
  /// Runs a job on the endpoint's thread.
  void post(std::function<void()> job);
  /// Lets a program in; returns the key that it has to show.
  std::string admit(std::shared_ptr<AgentSession> session);
  void dismiss(const std::string& key);

  void count(const AgentCounts& more);
  AgentCounts take_counts();

private:
  void handle(const net::ApiCall& call, const net::ApiServer::Answer& answer);

  const std::string who_;
  const std::uint16_t port_;
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<AgentSession>> sessions_; ///< by key
  AgentCounts counts_;
  std::unique_ptr<net::ApiServer> server_; ///< last: it uses the others
};

/// Returns the endpoint of a worker's agents; null: the run has none.
std::shared_ptr<AgentHost> make_agent_host(const WorkerContext& worker);

} // namespace troupe::actors
