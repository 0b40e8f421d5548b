// One attempt at a run: its worker processes, its actor system and its actors,
// from the start of the workers to the end of all of them. Everything of an
// attempt ends with it; what outlives it is in RunProcess and SessionFiles.
//
//   start workers -> all joined -> shards loaded -> steps ... -> end
//        any child exit, lost worker, signal or time limit on the way
#pragma once

#include "actors/protocol/system.hpp"
#include "config/base/error.hpp"
#include "runtime/base/event_queue.hpp"
#include "runtime/base/last_resort.hpp"
#include "runtime/launch/launcher.hpp"
#include "runtime/prepare/prepared_run.hpp"
#include "runtime/session/host_probe.hpp"
#include "runtime/session/run_actors.hpp"
#include "runtime/session/run_entrance.hpp"
#include "runtime/session/run_process.hpp"
#include "runtime/session/session_clock.hpp"
#include "runtime/session/session_end.hpp"
#include "runtime/session/session_events.hpp"
#include "runtime/session/session_files.hpp"
#include "runtime/session/stopped_workers.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace troupe::runtime {

struct AttemptResult {
  actors::RunEnd end;
  bool interrupted = false;       ///< by Ctrl-C
  bool started = false;           ///< whether all workers had loaded
  std::optional<LostWorker> lost; ///< first worker whose death was known
  /// The node of the first worker that did not come, if it did not start.
  std::optional<std::uint32_t> absent_node;
  bool hosts_are_back = false; ///< it stopped for the hosts it did without
};

class Attempt {
public:
  /// All three must outlive it.
  Attempt(const PreparedRun& run, RunProcess& process, SessionFiles& files);
  /// Waits for the end of the actor system; exits the process if it hangs.
  ~Attempt();
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;

  AttemptResult run();
  /// Sets the exit code of a process whose actor system does not end.
  void set_code_if_it_hangs(ExitCode code) {
    if_it_hangs_.code = code;
  }

private:
  void start_workers(const std::string& address);
  void start_spares();
  void handle(const WorkerJoined& event);
  void handle(const HostsAnswered& event);
  void handle(const AllJoined& event);
  void handle(const AllLoaded& event);
  void handle(const StartFailed& event);
  void handle(const WorkerLost& event);
  void handle(const WorkerExited& event);
  void handle(const StepCommitted& event);
  void handle(const Evaluated& event);
  void handle(const Stalled& event);
  void handle(const WorkerHeard& event);
  void handle(const actors::RunEnd& event);
  void open_to_agents();
  void tell_of_files(const std::vector<actors::SetupDone>& ready);
  void stop(int signal);
  void check_best();
  void on_idle();
  void check_limits();
  void check_start();
  std::optional<int> wanted_stop() const;
  void lose_worker(LostWorker lost);
  void add_step(const actors::StepReport& report);
  std::optional<std::uint32_t> absent_node() const;
  void close_down();
  void record_rest();
  void end_in_order();
  void end_actors();
  /// Returns a callback by which an actor notifies this attempt.
  template <class Event>
  auto pushes() {
    return [this](auto... parts) { events_.push(Event{std::move(parts)...}); };
  }

  /// Ends the process if its actor system does not end.
  struct IfItHangs {
    LastResort last_resort{"master"};
    ExitCode code = ExitCode::failed;
  };
  /// Watches workers until all have joined, and hosts that are lost.
  struct Watch {
    SessionClock clock;
    StoppedWorkers stopped;
    std::set<WorkerId> joined;
    HostProbe probe;
    bool hosts_are_back = false;
  };
  struct ActorSystem {
    actors::SystemConfig config{0};
    caf::actor_system system{config};
  };

  const PreparedRun& run_;
  RunProcess& process_;
  SessionFiles& files_;
  IfItHangs if_it_hangs_; ///< destroyed after all that may hang
  EventQueue<SessionEvent> events_;
  RunBasis basis_;
  std::unique_ptr<Launcher> launcher_; ///< not null
  ActorSystem system_;
  RunEntrance entrance_;
  RunActors actors_;
  SessionEnd end_;
  Watch watch_;
};

} // namespace troupe::runtime
