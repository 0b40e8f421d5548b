// The endpoint of a worker for the programs of its sessions: an HTTP server on
// the loopback address that speaks OpenAI's protocol. Whoever has a session's
// key talks to that session; nobody else gets anything. With agents.port the
// same requests come from the master's endpoint too.
// Owner: the worker's context; it starts at the first session.
#pragma once

#include "actors/agents/agent_session.hpp"
#include "models/agents/session_report.hpp"

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
  std::uint64_t taken = 0;          ///< attempts that programs took
  double waited_s = 0;              ///< how long these were open before

  void add(const AgentCounts& more);
};

/// Returns the numbers of a session that has ended.
AgentCounts counts_of(const AgentSession& session, std::uint32_t retries,
                      bool failed);

/// A session as the endpoint knows it.
struct AdmittedSession {
  std::shared_ptr<AgentSession> session;
  /// Hands it to a program from outside; nothing: it is over, or taken. Empty:
  /// its program was started here. Both are called on any thread.
  std::function<std::optional<models::TakenSession>()> take = {};
  /// Takes what that program says at the end.
  std::function<void(const models::SessionReport&)> end = {};
};

/// The way to the master's endpoint. An interface, so that what uses it is
/// tested without one.
class MasterSessions {
public:
  virtual ~MasterSessions() = default;
  /// Returns once the master knows the key. Throws FailureError.
  virtual void open(const std::string& key, bool waits) = 0;
  virtual void close(const std::string& key) = 0;
  /// Returns where programs find the master: "http://10.0.0.1:4711/v1".
  virtual std::string url() const = 0;
};

class AgentHost {
public:
  explicit AgentHost(std::string who) : who_(std::move(who)) {}

  /// Connects with the master's endpoint, before the first session.
  void connect(std::unique_ptr<MasterSessions> master) {
    master_ = std::move(master);
  }

  // -- thread-safe --
  /// Starts the endpoint if it has not been. Throws FailureError (io).
  void start();
  /// Returns "http://127.0.0.1:4711/v1".
  std::string url() const;
  /// Returns the same of the master's endpoint; empty: it has none.
  std::string master_url() const;
  /// Runs a job on the endpoint's thread.
  void post(std::function<void()> job);
  /// Lets a program in, here and at the master; returns the key that it has to
  /// show. Throws FailureError: the run ends.
  std::string admit(AdmittedSession session);
  void dismiss(const std::string& key);
  /// Handles a request, on any thread.
  void handle(const net::ApiCall& call, const net::ApiServer::Answer& answer);
  /// Hands the session of this key to a program; nothing: there is none to be
  /// taken.
  std::optional<models::TakenSession> take(const std::string& key);

  void count(const AgentCounts& more);
  AgentCounts take_counts();

private:
  std::optional<AdmittedSession> find(const std::string& key) const;

  const std::string who_;
  std::unique_ptr<MasterSessions> master_; ///< null: none
  mutable std::mutex mutex_;
  std::map<std::string, AdmittedSession> sessions_; ///< by key; guarded
  AgentCounts counts_;                              ///< guarded
  std::unique_ptr<net::ApiServer> server_; ///< last: it uses the others
};

/// Returns the endpoint of a worker's agents; null: the run has none.
std::shared_ptr<AgentHost> make_agent_host(const WorkerContext& worker);

} // namespace troupe::actors
