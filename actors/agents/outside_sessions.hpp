// The sessions of one call that programs from outside take at the master's
// endpoint: opens as many at once as it may, ends those that are late, and
// opens failed ones again. Which program takes a session changes no token. A
// thread of its own waits for their ends. Parent: the device's job, whose end
// ends them.
#pragma once

#include "actors/agents/agent_programs.hpp"
#include "models/agents/session_attempts.hpp"

namespace troupe::actors {

/// Attempts of a call, and what programs did with them; what the threads of
/// requests and the one of the call share.
class SharedAttempts {
public:
  using Attempt = models::SessionAttempt;
  struct Ended {
    Attempt attempt;
    models::SessionReport report;
  };

  explicit SharedAttempts(models::SessionAttempts attempts)
    : attempts_(std::move(attempts)) {}

  // -- thread-safe --
  /// Runs `body` on the attempts.
  template <class Body>
  auto with(Body body) {
    const std::lock_guard lock(mutex_);
    return body(attempts_);
  }
  void put(Ended ended);
  /// Waits for ends, or a moment.
  std::vector<Ended> take();
  void stop();
  bool stopped() const;

private:
  mutable std::mutex mutex_;
  std::condition_variable came_;
  models::SessionAttempts attempts_; ///< guarded, like the next
  std::vector<Ended> ended_;
  bool stopped_ = false;
};

class OutsideSessions {
public:
  /// Starts. `host` and the tasks' sessions outlive it.
  OutsideSessions(AgentHost& host, const AgentProgramOptions& options,
                  std::vector<AgentTask> tasks, AgentPrograms::Events events);
  /// Closes what is open.
  ~OutsideSessions();
  OutsideSessions(const OutsideSessions&) = delete;
  OutsideSessions& operator=(const OutsideSessions&) = delete;

private:
  using Attempt = models::SessionAttempt;

  void run();
  void run_all();
  void open_waiting();
  AdmittedSession admitted(const Attempt& attempt);
  void end_late();
  void count_progress() const;
  void settle(const Attempt& attempt, const models::SessionEnd& end);

  AgentHost& host_;
  const AgentProgramOptions options_;
  const std::vector<AgentTask> tasks_;
  const AgentPrograms::Events events_;
  const std::shared_ptr<SharedAttempts> shared_;
  std::map<std::size_t, std::string> keys_; ///< of open ones, by task
  std::thread thread_;                      ///< last: it uses the others
};

} // namespace troupe::actors
