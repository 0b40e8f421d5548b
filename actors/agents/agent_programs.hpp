// The processes of one call's sessions: starts as many at once as it may, ends
// those that take too long, and runs failed ones again. A thread of its own
// waits for them. Parent: the device's job, whose end ends them.
#pragma once

#include "actors/agents/agent_host.hpp"
#include "config/base/awake_clock.hpp"
#include "models/agents/session_end.hpp"
#include "net/child_programs/child_pool.hpp"

#include <atomic>
#include <condition_variable>
#include <thread>

namespace troupe::actors {

struct AgentProgramOptions {
  std::string command;
  std::string sandbox; ///< before the command; empty: none
  std::uint32_t concurrency = 1;
  std::uint32_t retries = 0;
  std::chrono::duration<double> within{0}; ///< of one attempt
  bool needs_reward = false; ///< the program's number is the score
  std::filesystem::path log_folder;
  std::string log_name; ///< "agent_w0_d1": a slot's log is NAME_SLOT.log
  /// Counts while programs are within their time; null: nobody looks.
  std::atomic<std::uint64_t>* progress = nullptr;
};

/// One session to run.
struct AgentTask {
  SampleId sample;
  std::string row; ///< JSON, for its standard input
  std::shared_ptr<AgentSession> session;
};

/// Programs that ended, until the thread that started them takes them.
class EndedPrograms {
public:
  void put(const net::ChildExit& exit);
  void stop();
  /// Waits for one, or a moment.
  std::vector<net::ChildExit> take();
  bool stopped() const;

private:
  mutable std::mutex mutex_;
  std::condition_variable came_;
  std::vector<net::ChildExit> exits_; ///< guarded, like the next
  bool stopped_ = false;
};

class AgentPrograms {
public:
  struct Events {
    /// Takes the end of task i, for good; what it throws ends all.
    std::function<void(std::size_t i, const models::SessionEnd& end)> on_end;
    /// Called once, at the end of all, with the reason if they were ended.
    std::function<void(std::optional<Failure>)> on_all_ended;
  };

  /// Starts. `host` and the tasks' sessions outlive it.
  AgentPrograms(AgentHost& host, AgentProgramOptions options,
                std::vector<AgentTask> tasks, Events events);
  /// Kills what runs.
  ~AgentPrograms();
  AgentPrograms(const AgentPrograms&) = delete;
  AgentPrograms& operator=(const AgentPrograms&) = delete;

private:
  /// An attempt that waits or runs.
  struct Attempt {
    std::size_t task = 0;
    std::uint32_t number = 0; ///< 0: the first
  };
  struct Running {
    Attempt attempt;
    std::uint32_t slot = 0;
    pid_t pid = 0;
    std::string key;
    net::Descriptor output;
    std::uintmax_t log_begin = 0;
    AwakeClock::time_point deadline;
    bool late = false;
  };

  void run();
  void run_all(net::ChildPool& pool);
  void start_waiting(net::ChildPool& pool);
  void start(net::ChildPool& pool, const Attempt& attempt);
  net::ChildSpec spec_of(const Attempt& attempt, const Running& running) const;
  void kill_late(net::ChildPool& pool);
  void count_progress() const;
  void ended(const net::ChildExit& exit);
  void settle(const Attempt& attempt, const models::SessionEnd& end);
  std::filesystem::path log_of(std::uint32_t slot) const;

  AgentHost& host_;
  const AgentProgramOptions options_;
  const std::vector<AgentTask> tasks_;
  const Events events_;
  // used by the thread
  std::deque<Attempt> waiting_;
  std::map<std::uint32_t, Running> running_; ///< by number of its start
  std::vector<std::uint32_t> free_slots_;
  std::uint32_t num_starts_ = 0;
  EndedPrograms exits_; ///< shared
  std::thread thread_;  ///< last: it uses the others
};

} // namespace troupe::actors
