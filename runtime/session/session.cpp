#include "runtime/session/session.hpp"

#include "actors/checkpoint/snapshot_record.hpp"
#include "actors/protocol/ask.hpp"
#include "plans/recovery/recovery.hpp"
#include "runtime/prepare/run_attempt.hpp"
#include "runtime/run_folder/run_folder.hpp"
#include "runtime/run_folder/run_keeper.hpp"
#include "runtime/session/attempt.hpp"
#include "runtime/session/fewer_hosts.hpp"
#include "runtime/session/run_process.hpp"
#include "runtime/session/session_files.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe::runtime {

namespace {

class Session {
public:
  explicit Session(PreparedRun& run)
    : run_(run),
      files_(run),
      whole_(run.work) {}

  ExitCode run();

private:
  std::optional<ExitCode> run_attempt();
  std::optional<ExitCode> run_next_attempt();
  bool recovers_from(const AttemptResult& result);
  plans::RecoveryRules rules() const;
  void prepare_next_attempt();
  ExitCode conclude(const AttemptResult& result);

  PreparedRun& run_;
  RunProcess process_; ///< before anything is written
  SessionFiles files_;
  std::vector<plans::FailedAttempt> failed_;
  PlannedWork whole_;                   ///< for all hosts
  std::vector<std::string> lost_hosts_; ///< of the next attempt
  std::chrono::seconds wait_{0};        ///< for a node, before the next attempt
};

ExitCode Session::run() {
  auto code = run_attempt();
  while (!code)
    code = run_next_attempt();
  return *code;
}

/// Returns the exit code of the run; nothing if another attempt follows.
std::optional<ExitCode> Session::run_attempt() {
  Attempt attempt(run_, process_, files_);
  const auto result = attempt.run();
  if (result.hosts_are_back) {
    lost_hosts_.clear();
    return std::nullopt;
  }
  if (recovers_from(result))
    return std::nullopt;
  const auto code = conclude(result);
  if (!run_.stops_at_once()) // commands keep their results after the session
    attempt.set_code_if_it_hangs(code);
  return code;
}

std::optional<ExitCode> Session::run_next_attempt() {
  try {
    prepare_next_attempt();
    begin_next_attempt(run_);
    files_.open_attempt();
    if (run_.attempt.resume.action != ResumeAction::already_done)
      return run_attempt();
  } catch (const std::exception& error) { // a full disk, a damaged checkpoint
    return conclude({.end = {.kind = actors::RunEnd::Kind::failed,
                             .next_step = StepId{run_.steps.first},
                             .failure = actors::to_failure(error, "master")}});
  }
  // the last checkpoint had been written already
  return conclude({.end = {.next_step = StepId{run_.steps.end},
                           .checkpoint = run_.attempt.checkpoint->string()}});
}

/// Waits for a lost node, or plans for the hosts that are left.
void Session::prepare_next_attempt() {
  process_.wait(std::exchange(wait_, {}));
  if (lost_hosts_ != run_.attempt.lost_hosts)
    plan_without(run_, whole_, lost_hosts_);
}

/// Returns what recoveries may do. Only training has checkpoints, and workers
/// that were started by hand can come back only if they still know the secret,
/// or somebody starts others.
plans::RecoveryRules Session::rules() const {
  const auto& cluster = run_.work.settings.cluster;
  const auto& recovery = cluster.recovery;
  plans::RecoveryRules rules{.nodes = run_.work.plan.cluster.nodes};
  if (recovery.lost_node == "wait")
    rules.lost_node = plans::LostNode::wait;
  if (recovery.lost_node == "shrink")
    rules.lost_node = plans::LostNode::shrink;
  const bool come_back = cluster.launcher != "manual" || !cluster.secret.empty()
                         || rules.lost_node == plans::LostNode::wait;
  if (run_.mode() == RunMode::train && come_back)
    rules.max_restarts = static_cast<std::uint32_t>(recovery.max_restarts);
  return rules;
}

bool Session::recovers_from(const AttemptResult& result) {
  if (result.end.kind != actors::RunEnd::Kind::failed
      || process_.stop_signal().has_value())
    return false;
  const bool lost_snapshot = run_.attempt.snapshot && !result.started
                             && result.end.failure.code == Errc::stale;
  if (lost_snapshot)
    actors::forget_newest_snapshot(run_.attempt.folder);
  const auto next_attempt
    = [&] { return attempt_after(run_.attempt, run_.work, run_.steps.end); };
  auto next = next_attempt();
  failed_.push_back(
    {.failure = result.end.failure,
     .worker = result.lost ? std::optional(result.lost->worker) : std::nullopt,
     .step = result.end.next_step,
     .saved = StepId{next.resume.first_step},
     .started = result.started,
     .killed = result.lost && result.lost->killed,
     .lost_snapshot = lost_snapshot,
     .absent_node = result.absent_node});
  const auto decision = plans::decide_recovery(failed_, rules());
  if (!decision.recovers) {
    files_.give_up(decision.reason);
    return false;
  }
  try {
    if (!next.snapshot)
      set_aside_damaged(RunFolder(run_.attempt.folder));
  } catch (const std::exception& error) {
    files_.give_up(error.what());
    return false;
  }
  next = next_attempt();
  const std::uint32_t lost_steps
    = files_.committed_steps()
      - std::min(files_.committed_steps(), next.resume.first_step);
  wait_ = decision.wait;
  if (decision.without_node)
    lost_hosts_.push_back(
      run_.work.settings.cluster.hosts.at(*decision.without_node));
  if (wait_.count() > 0 && files_.waits_for(*result.absent_node))
    return true;
  ++run_.attempt.restarts;
  run_.attempt.lost_steps += lost_steps;
  files_.begin_recovery(result.end, lost_steps);
  if (wait_.count() > 0)
    files_.wait_for_node(result.end, *result.absent_node);
  return true;
}

ExitCode Session::conclude(const AttemptResult& result) {
  const actors::RunEnd& end = result.end;
  if (run_.listeners.on_end)
    run_.listeners.on_end(end);
  const double wall_s = process_.clock.elapsed().count();
  switch (end.kind) {
  case actors::RunEnd::Kind::done:
    end_snapshots(run_.attempt.folder);
    files_.conclude_done(end, wall_s);
    return ExitCode::done;
  case actors::RunEnd::Kind::stopped:
    end_snapshots(run_.attempt.folder);
    files_.conclude_stopped(end, wall_s, result.interrupted);
    return result.interrupted ? ExitCode::interrupted : ExitCode::stopped;
  case actors::RunEnd::Kind::failed:
    files_.conclude_failed(end);
    return end.failure.code == Errc::bad_input ? ExitCode::wrong_input
                                               : ExitCode::failed;
  }
  return ExitCode::failed;
}

} // namespace

ExitCode run_session(PreparedRun& run) {
  return Session{run}.run();
}

} // namespace troupe::runtime
