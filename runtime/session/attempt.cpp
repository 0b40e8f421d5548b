#include "runtime/session/attempt.hpp"

#include "actors/checkpoint/snapshot_record.hpp"
#include "config/base/defaults.hpp"
#include "config/base/log.hpp"
#include "config/base/random_hex.hpp"
#include "config/trace/trace.hpp"
#include "runtime/run_folder/agents_token.hpp"

#include <fmt/format.h>

#include <csignal>
#include <variant>

namespace troupe::runtime {

using std::chrono::steady_clock;

Attempt::Attempt(const PreparedRun& run, RunProcess& process,
                 SessionFiles& files)
  : run_(run),
    process_(process),
    files_(files),
    basis_(make_basis(run, random_hex(8))),
    launcher_(process.next_launcher ? std::move(process.next_launcher)
                                    : std::make_unique<Launcher>()),
    entrance_(system_.system),
    actors_(system_.system, basis_),
    end_(StepId{run.steps.first}, basis_.asks),
    watch_{.probe = HostProbe(run.attempt.lost_hosts,
                              [this] { events_.push(HostsAnswered{}); })} {}

Attempt::~Attempt() {
  if_it_hangs_.last_resort.arm(defaults::ends_within, if_it_hangs_.code);
  end_actors();
}

void Attempt::start_workers(const std::string& address) {
  const auto spec
    = launch_spec(run_.work.settings, run_.work.plan.cluster, files_.folder(),
                  address, files_.write_secret(entrance_.secret()));
  log::runtime.info("workers join at " + spec.address);
  if (spec.launcher != LauncherKind::manual)
    return launcher_->start(spec, pushes<WorkerExited>());
  files_.say(fmt::format("waiting for {} workers: {}",
                         spec.cluster.num_workers(), command_by_hand(spec)));
}

/// Starts what the next attempt begins with, if there is one.
void Attempt::start_spares() {
  const auto& settings = run_.work.settings;
  if (settings.cluster.recovery.spares == 0 || process_.next_launcher)
    return;
  try {
    process_.next_launcher = std::make_unique<Launcher>();
    process_.next_launcher->start_spares(
      launch_spec(settings, run_.work.plan.cluster, files_.folder(), "", ""),
      static_cast<std::uint32_t>(settings.cluster.recovery.spares));
  } catch (const FailureError& error) { // they only save time
    log::runtime.warn("no spare workers: " + to_string(error.failure()));
  }
}

AttemptResult Attempt::run() {
  try {
    files_.write_state(run_.attempt.restarts == 0 ? "starting" : "recovering");
    start_workers(entrance_.open(basis_, {.on_joined = pushes<WorkerJoined>(),
                                          .on_full = pushes<AllJoined>(),
                                          .on_suspect = pushes<WorkerHeard>(),
                                          .on_lost = pushes<WorkerLost>()}));
    while (!end_.has_come()) {
      const auto event = events_.pop_until(steady_clock::now()
                                           + std::chrono::milliseconds{100});
      if (event)
        std::visit([this](const auto& what) { handle(what); }, *event);
      on_idle();
    }
  } catch (const std::exception& error) { // a port in use, a full disk, a bug
    const auto failure = actors::to_failure(error, "master");
    if (end_.has_come())
      log::runtime.warn("after the end: " + to_string(failure));
    end_.fail(failure);
  }
  close_down();
  record_rest();
  if (basis_.best && end_.has_come_as(actors::RunEnd::Kind::done))
    basis_.best->finish();
  return {.end = end_.get(),
          .interrupted = end_.signal() == SIGINT,
          .started = actors_.master() != nullptr,
          .lost = end_.first_death(),
          .absent_node = absent_node(),
          .hosts_are_back = watch_.hosts_are_back && !end_.signal()
                            && end_.has_come_as(actors::RunEnd::Kind::stopped)};
}

void Attempt::handle(const WorkerJoined& event) {
  watch_.joined.insert(event.worker);
}

/// Ends the attempt after a checkpoint; the next one has all hosts again.
void Attempt::handle(const HostsAnswered&) {
  if (!actors_.master() || end_.signal() || watch_.hosts_are_back)
    return;
  watch_.hosts_are_back = true;
  files_.say("the lost hosts are back; continuing on all nodes");
  caf::anon_send(actors_.master(), actors::stop_atom::value);
}

/// Returns the node of the worker whose death ended the start, else of the
/// first that has not joined.
std::optional<std::uint32_t> Attempt::absent_node() const {
  const auto& cluster = run_.work.plan.cluster;
  if (actors_.have_workers())
    return std::nullopt;
  if (const auto& dead = end_.first_death())
    return watch_.joined.contains(dead->worker)
             ? std::nullopt
             : std::optional(dead->worker.value / cluster.workers_per_node);
  for (std::uint32_t i = 0; i < cluster.num_workers(); ++i)
    if (!watch_.joined.contains(WorkerId{i}))
      return i / cluster.workers_per_node;
  return std::nullopt;
}

void Attempt::handle(const AllJoined& event) {
  entrance_.close();
  for (std::uint32_t i = 0; i < event.workers.size(); ++i)
    files_.add_worker(i, event.workers[i].request.host,
                      event.workers[i].request.pid);
  open_to_agents();
  actors_.load(event.workers, {.on_ready = pushes<AllLoaded>(),
                               .on_failure = pushes<StartFailed>()});
}

/// Opens the port for programs that run elsewhere, if there is to be one.
void Attempt::open_to_agents() {
  if (agents_of(run_.work.settings).port == 0)
    return;
  const auto url = actors_.open_to_agents(agents_token(files_.folder()));
  if (run_.attempt.restarts == 0)
    files_.say("agents find the run at " + url);
}

/// Says whether the hosts share the files of the run, if there are several.
void Attempt::tell_of_files(const std::vector<actors::SetupDone>& ready) {
  std::vector<std::size_t> apart;
  for (std::size_t i = 0; i < ready.size(); ++i)
    if (!ready[i].shares_files)
      apart.push_back(i);
  if (apart.empty() && run_.work.plan.cluster.nodes == 1)
    return;
  const auto text
    = apart.empty()
        ? "all hosts share the files of the run"
        : fmt::format("workers {} do not share the files of the run: they read "
                      "and write them over the network",
                      fmt::join(apart, ", "));
  log::runtime.info(text);
  if (run_.attempt.restarts == 0)
    files_.say(text);
}

void Attempt::handle(const AllLoaded& event) {
  tell_of_files(event.ready);
  if (run_.mode() == RunMode::move_check)
    return actors_.begin_move_check(event.ready, pushes<actors::RunEnd>());
  actors_.spawn_master(event.ready, {.on_step = pushes<StepCommitted>(),
                                     .on_evaluation = pushes<Evaluated>(),
                                     .on_end = pushes<actors::RunEnd>(),
                                     .on_stall = pushes<Stalled>()});
  files_.begin_steps();
  const auto& master = actors_.master();
  caf::anon_send(entrance_.heartbeat(), actors::ping_atom::value,
                 actors::HeartbeatListener{master});
  caf::anon_send(master, actors::start_atom::value);
  if (end_.signal())
    caf::anon_send(master, actors::stop_atom::value);
  start_spares();
}

void Attempt::handle(const StartFailed& event) {
  end_.fail(event.failure);
}

void Attempt::handle(const WorkerLost& event) {
  end_.connection_broke({event.worker, event.failure}, steady_clock::now());
}

void Attempt::handle(const WorkerExited& event) {
  const auto words = files_.crash_report(event.worker);
  basis_.asks->was_at(event.worker, words.work);
  lose_worker(
    {.worker = event.worker,
     .failure = {.code = Errc::peer_lost,
                 .who = fmt::format("worker {} (pid {})", event.worker.value,
                                    event.exit.pid),
                 .what = net::to_string(event.exit),
                 .cause = words.said},
     .killed = event.exit.signal != 0});
}

/// Ends training after a checkpoint, anything else at once.
void Attempt::stop(int signal) {
  end_.ask(signal);
  files_.write_state("stopping");
  if (actors_.master() && !run_.stops_at_once())
    caf::anon_send(actors_.master(), actors::stop_atom::value);
  else
    end_.stop_now();
}

/// Writes the numbers of a step, then the record by which a run continues after
/// it: never after a step whose numbers are lost.
void Attempt::add_step(const actors::StepReport& report) {
  files_.add_step(report);
  end_.commit(StepId{files_.committed_steps()});
  const auto& record = report.copies.record;
  if (record.id == 0)
    return;
  try {
    actors::write_snapshot_record(run_.attempt.folder, record);
    *basis_.recorded = record.id;
  } catch (const FailureError& error) {
    log::runtime.warn("no snapshots any more: " + to_string(error.failure()));
  }
}

void Attempt::handle(const StepCommitted& event) {
  add_step(event.report);
  check_best();
  if (run_.listeners.on_step)
    run_.listeners.on_step(event.report);
}

void Attempt::handle(const Evaluated& event) {
  files_.add_evaluation(event.report);
  check_best();
  if (basis_.best)
    basis_.best->refresh();
  if (run_.listeners.on_evaluation)
    run_.listeners.on_evaluation(event.report);
}

void Attempt::check_best() {
  if (const auto wrong = basis_.best ? basis_.best->mistake() : std::nullopt)
    end_.fail(*wrong);
}

void Attempt::handle(const Stalled& event) {
  log::runtime.warn(event.text);
}

void Attempt::handle(const WorkerHeard& event) {
  if (actors_.have_workers()) // otherwise the status does not have it yet
    files_.set_worker_state(event.worker, event.suspect ? "suspect" : "ready");
}

void Attempt::handle(const actors::RunEnd& event) {
  end_.hear(event, steady_clock::now());
}

/// Reports connections whose process did not explain itself in time.
void Attempt::on_idle() {
  if (process_.suspend.came())
    process_.suspend.suspend(
      [this](int signal) { launcher_->signal_all(signal); });
  for (const auto& lost : end_.look(steady_clock::now()))
    lose_worker(lost);
  check_limits();
}

void Attempt::check_limits() {
  watch_.probe.look(steady_clock::now());
  if (const auto full = process_.open_files.look("master"))
    end_.fail(*full);
  if (const auto signal = wanted_stop(); signal && !end_.signal())
    stop(*signal);
  if (!actors_.have_workers()
      && run_.work.settings.cluster.launcher != "manual")
    check_start();
}

/// Reports workers that do not join: at once those that are stopped.
void Attempt::check_start() {
  const auto silence
    = run_.work.settings.cluster.silence_s
        ? std::chrono::seconds(*run_.work.settings.cluster.silence_s)
        : defaults::dead_after;
  for (const auto worker :
       watch_.stopped.look(launcher_->stopped(), AwakeClock::now(), silence))
    lose_worker(
      {.worker = worker,
       .failure = {.code = Errc::peer_lost,
                   .who = fmt::format("worker {}", worker.value),
                   .what = "was stopped by a signal before it had joined",
                   .cause = ""},
       .killed = true});
  if (watch_.clock.awake() > defaults::workers_join_within)
    end_.fail({.code = Errc::deadline,
               .who = "master",
               .what = "not all workers joined in time",
               .cause = files_.crash_report(WorkerId{0}).said});
}

/// Returns the signal of a user, or SIGTERM where the run's folder or its time
/// asks it to stop. That time is wall time since the first attempt, suspended
/// or not: its user or scheduler counts it so.
std::optional<int> Attempt::wanted_stop() const {
  if (const auto signal = process_.stop_signal())
    return signal;
  const auto max_time = run_.steps.max_time;
  const bool out_of_time
    = max_time.count() > 0 && process_.clock.elapsed() > max_time;
  return out_of_time || files_.stop_requested() ? std::optional(SIGTERM)
                                                : std::nullopt;
}

void Attempt::lose_worker(LostWorker lost) {
  end_.add_death(lost);
  if (actors_.master() && !end_.waits_for_death()) {
    caf::anon_send(actors_.master(), actors::down_atom::value,
                   actors::to_failure_message(lost.failure));
    return;
  }
  lost.failure.what += basis_.asks->work_of(lost.worker);
  end_.fail(lost.failure);
}

// -- the end -----------------------------------------------------------------

void Attempt::close_down() {
  if (end_.has_come_as(actors::RunEnd::Kind::failed)) {
    launcher_->kill_all();
    launcher_->end_all(defaults::kill_workers_within);
  } else {
    end_in_order();
  }
  end_actors();
  trace::stop();
}

/// Records steps that were committed before the end and reported after it: a
/// checkpoint may have them, and its run's metrics must too.
void Attempt::record_rest() {
  try {
    while (const auto event = events_.pop_until(steady_clock::now())) {
      if (const auto* step = std::get_if<StepCommitted>(&*event))
        add_step(step->report);
      if (const auto* found = std::get_if<Evaluated>(&*event))
        files_.add_evaluation(found->report);
    }
  } catch (const std::exception& error) { // a full disk: the end has its cause
    log::runtime.warn("after the end: " + std::string(error.what()));
  }
}

void Attempt::end_in_order() {
  caf::scoped_actor self{system_.system, /*hide=*/true};
  self->monitor(entrance_.heartbeat());
  self->send(entrance_.heartbeat(), actors::stop_atom::value);
  const bool cut_short
    = run_.stops_at_once() && end_.has_come_as(actors::RunEnd::Kind::stopped);
  if (!actors_.have_workers() || cut_short)
    launcher_->kill_all();
  launcher_->end_all(defaults::shutdown_grace);
  // workers that were started elsewhere: their order to end must be sent first
  self->receive([](const caf::down_msg&) {},
                caf::after(defaults::shutdown_grace) >> [] {});
}

/// Ends the actors, or the actor system would wait for them for ever.
void Attempt::end_actors() {
  entrance_.end();
  actors_.end();
}

} // namespace troupe::runtime
