#include "runtime/session.hpp"

#include "actors/door.hpp"
#include "actors/heartbeat_actor.hpp"
#include "actors/system.hpp"
#include "config/awake_clock.hpp"
#include "config/defaults.hpp"
#include "config/log.hpp"
#include "config/trace.hpp"
#include "net/open_files.hpp"
#include "runtime/event_queue.hpp"
#include "runtime/first_cause.hpp"
#include "runtime/last_resort.hpp"
#include "runtime/launcher.hpp"
#include "runtime/listen_ports.hpp"
#include "runtime/own_address.hpp"
#include "runtime/random_hex.hpp"
#include "runtime/run_secret.hpp"
#include "runtime/session_events.hpp"
#include "runtime/session_files.hpp"
#include "runtime/session_setup.hpp"
#include "runtime/stop_signals.hpp"
#include "runtime/suspend_signal.hpp"

#include <fmt/format.h>

#include <csignal>
#include <variant>

namespace troupe::runtime {

namespace {

using std::chrono::steady_clock;

class Session {
public:
  explicit Session(const SessionPlan& plan)
    : plan_(plan),
      signals_([this](int signal) { events_.push(StopAsked{signal}); }),
      files_(plan),
      basis_(make_basis(plan, random_hex(8))),
      launcher_([this](WorkerId worker, const net::ChildExit& exit) {
        events_.push(WorkerExited{worker, exit});
      }),
      system_(config_) {}
  ~Session() {
    last_resort_.arm(defaults::ends_within, code_if_it_hangs_);
    end_actors();
  }

  ExitCode run();

private:
  void open_door();
  void start_workers(const std::string& address);
  void handle(const AllJoined& event);
  void handle(const AllLoaded& event);
  void handle(const StartFailed& event);
  void handle(const WorkerLost& event);
  void handle(const WorkerExited& event);
  void handle(const StopAsked& event);
  void handle(const StepCommitted& event);
  void handle(const Evaluated& event);
  void handle(const Stalled& event);
  void handle(const WorkerHeard& event);
  void handle(const actors::RunEnd& event);
  void begin_move_check(const AllLoaded& event);
  void check_best();
  void on_idle();
  void lose_worker(LostWorker lost);
  void fail(const Failure& failure);
  void close_down();
  void end_actors();
  ExitCode conclude();
  /// What an actor calls to tell the session.
  template <class Event>
  auto pushes() {
    return [this](auto... parts) { events_.push(Event{std::move(parts)...}); };
  }

  const SessionPlan& plan_;
  LastResort last_resort_{"master"}; ///< destroyed last
  SuspendSignal suspend_;
  EventQueue<SessionEvent> events_;
  StopSignals signals_; ///< before anything is written
  SessionFiles files_;
  RunBasis basis_;
  RunSecret secret_;
  Launcher launcher_;
  actors::SystemConfig config_{0};
  caf::actor_system system_;
  std::optional<actors::Door> door_;
  std::uint16_t door_port_ = 0;

  actors::HeartbeatActor heartbeat_;
  actors::LobbyActor lobby_;
  actors::SetupActor setup_;
  actors::MasterActor master_;
  actors::MoveCheckActor move_check_;
  std::vector<actors::NodeActor> nodes_;
  std::vector<caf::actor_addr> ours_; ///< of this process; told to exit
  FirstCause cause_;
  std::optional<actors::RunEnd> end_;
  std::optional<int> signal_;
  bool ending_ = false;
  steady_clock::time_point started_ = steady_clock::now();
  AwakeClock::time_point started_awake_ = AwakeClock::now();
  ExitCode code_if_it_hangs_ = ExitCode::failed;
  net::OpenFilesWatch open_files_;
};

void Session::open_door() {
  const auto& cluster = plan_.settings.cluster;
  heartbeat_ = system_.spawn(
    actors::heartbeat_actor,
    actors::HeartbeatSetup{.asks = basis_.asks,
                           .on_suspect = pushes<WorkerHeard>(),
                           .on_lost = pushes<WorkerLost>(),
                           .silence_limit
                           = std::chrono::seconds(cluster.silence_s.value())});
  ours_.push_back(heartbeat_.address());
  const auto where = listen_ports(
    master_bind(cluster, plan_.plan.cluster.nodes), cluster.ports);
  secret_ = make_run_secret(/*encrypts_data=*/cluster.tls != "off"
                            && !is_loopback(where.address));
  door_.emplace(system_, secret_.tls);
  auto setup = make_lobby(basis_, secret_);
  setup.on_full = pushes<AllJoined>();
  setup.heartbeat = heartbeat_;
  lobby_ = system_.spawn(actors::lobby_actor, std::move(setup));
  ours_.push_back(lobby_.address());
  listen_on_first_free(where, "master", [&](std::uint16_t wanted) {
    door_port_ = door_->open(lobby_, where.address, wanted);
  });
  start_workers(fmt::format("{}:{}", where.address, door_port_));
}

void Session::start_workers(const std::string& address) {
  const auto spec
    = launch_spec(plan_.settings, plan_.plan.cluster, files_.folder(), address,
                  files_.write_secret(secret_));
  log::runtime.info("workers join at " + spec.address);
  if (spec.launcher != LauncherKind::manual)
    return launcher_.start(spec);
  files_.say(fmt::format("waiting for {} workers: {}",
                         spec.cluster.num_workers(), command_by_hand(spec)));
}

ExitCode Session::run() {
  try {
    files_.write_state("starting");
    open_door();
    while (!end_) {
      const auto event = events_.pop_until(steady_clock::now()
                                           + std::chrono::milliseconds{100});
      if (event)
        std::visit([this](const auto& what) { handle(what); }, *event);
      on_idle();
    }
  } catch (const std::exception& error) { // a port in use, a full disk, a bug
    const auto failure = actors::to_failure(error, "master");
    if (end_)
      log::runtime.warn("after the end: " + to_string(failure));
    fail(failure);
  }
  close_down();
  const auto code = conclude();
  if (!plan_.stops_at_once) // verbs keep their results after the session
    code_if_it_hangs_ = code;
  return code;
}

void Session::handle(const AllJoined& event) {
  door_->close(lobby_, door_port_);
  for (std::uint32_t i = 0; i < event.workers.size(); ++i)
    files_.add_worker(i, event.workers[i].request.host,
                      event.workers[i].request.pid);
  auto setup = make_setup(basis_, event.workers);
  nodes_ = setup.nodes;
  setup.on_ready = pushes<AllLoaded>();
  setup.on_failure = pushes<StartFailed>();
  setup_ = system_.spawn(actors::setup_actor, std::move(setup));
  ours_.push_back(setup_.address());
  caf::anon_send(setup_, actors::start_atom::value);
}

void Session::handle(const AllLoaded& event) {
  if (plan_.move_check.count() > 0)
    return begin_move_check(event);
  auto made = spawn_master(system_, basis_, event.ready, nodes_,
                           {.on_step = pushes<StepCommitted>(),
                            .on_evaluation = pushes<Evaluated>(),
                            .on_end = pushes<actors::RunEnd>(),
                            .on_stall = pushes<Stalled>()});
  master_ = made.master;
  ours_.insert(ours_.end(), made.all.begin(), made.all.end());
  files_.begin_steps();
  caf::anon_send(heartbeat_, actors::ping_atom::value,
                 actors::PongListener{master_});
  caf::anon_send(master_, actors::start_atom::value);
  if (signal_)
    caf::anon_send(master_, actors::stop_atom::value);
}

void Session::begin_move_check(const AllLoaded& event) {
  auto made
    = spawn_move_check(system_, basis_, event.ready, pushes<actors::RunEnd>());
  move_check_ = made.check;
  ours_.insert(ours_.end(), made.all.begin(), made.all.end());
  caf::anon_send(move_check_, actors::start_atom::value);
}

void Session::handle(const StartFailed& event) {
  fail(event.failure);
}

void Session::handle(const WorkerLost& event) {
  if (!ending_)
    cause_.connection_broke({event.worker, event.failure}, steady_clock::now());
}

void Session::handle(const WorkerExited& event) {
  if (ending_)
    return;
  const auto words = files_.last_words(event.worker);
  basis_.asks->was_at(event.worker, words.work);
  lose_worker(
    {.worker = event.worker,
     .failure = {.code = Errc::peer_lost,
                 .who = fmt::format("worker {} (pid {})", event.worker.value,
                                    event.exit.pid),
                 .what = net::to_string(event.exit),
                 .cause = words.said}});
}

void Session::handle(const StopAsked& event) {
  signal_ = event.signal;
  files_.write_state("stopping");
  if (master_ && !plan_.stops_at_once)
    caf::anon_send(master_, actors::stop_atom::value);
  else
    end_ = actors::RunEnd{.kind = actors::RunEnd::Kind::stopped,
                          .next_step = StepId{plan_.first_step}};
}

void Session::handle(const StepCommitted& event) {
  files_.add_step(event.report);
  check_best();
  if (plan_.on_step)
    plan_.on_step(event.report);
}

void Session::handle(const Evaluated& event) {
  files_.add_evaluation(event.report);
  check_best();
  if (basis_.best)
    basis_.best->refresh();
  if (plan_.on_evaluation)
    plan_.on_evaluation(event.report);
}

void Session::check_best() {
  if (const auto wrong = basis_.best ? basis_.best->mistake() : std::nullopt)
    fail(*wrong);
}

void Session::handle(const Stalled& event) {
  log::runtime.warn(event.text);
}

void Session::handle(const WorkerHeard& event) {
  if (!nodes_.empty()) // else status does not know it yet
    files_.set_worker_state(event.worker, event.suspect ? "suspect" : "ready");
}

/// Workers may see their peer's sockets close before anybody hears that it
/// died.
void Session::handle(const actors::RunEnd& event) {
  if (end_ || cause_.holds_end())
    return;
  const bool by_peer = event.kind == actors::RunEnd::Kind::failed
                       && event.failure.code == Errc::peer_lost;
  const auto& death = cause_.first_death();
  if (by_peer && !death)
    return cause_.hold(event, steady_clock::now());
  end_ = event;
  if (by_peer) {
    end_->failure = death->failure;
    end_->failure.what += basis_.asks->work_of(death->worker);
  }
}

/// A connection whose process did not explain itself in time counts as is; a
/// run that has used up its time stops after a checkpoint. That time is wall
/// time, suspended or not: its user or scheduler counts it so.
void Session::on_idle() {
  if (suspend_.came())
    suspend_.suspend([this](int signal) { launcher_.signal_all(signal); });
  const auto now = steady_clock::now();
  if (!end_)
    end_ = cause_.unexplained_end(now);
  for (const auto& lost : cause_.unexplained(now))
    lose_worker(lost);
  if (const auto full = open_files_.look("master"); full && !end_)
    fail(*full);
  if (files_.stop_requested() && !signal_)
    handle(StopAsked{SIGTERM});
  if (plan_.max_time.count() > 0 && now - started_ > plan_.max_time && !signal_)
    handle(StopAsked{SIGTERM});
  if (nodes_.empty() && plan_.settings.cluster.launcher != "manual"
      && AwakeClock::now() - started_awake_ > defaults::workers_join_within)
    fail({.code = Errc::deadline,
          .who = "master",
          .what = "not all workers joined in time",
          .cause = files_.last_words(WorkerId{0}).said});
}

void Session::lose_worker(LostWorker lost) {
  cause_.add_death(lost);
  if (master_ && !cause_.holds_end()) {
    caf::anon_send(master_, actors::down_atom::value,
                   actors::to_trouble(lost.failure));
    return;
  }
  lost.failure.what += basis_.asks->work_of(lost.worker);
  fail(lost.failure);
}

void Session::fail(const Failure& failure) {
  if (end_)
    return;
  end_ = actors::RunEnd{.kind = actors::RunEnd::Kind::failed,
                        .next_step = StepId{plan_.first_step},
                        .failure = failure};
}

// -- the end -----------------------------------------------------------------

void Session::close_down() {
  ending_ = true;
  if (end_->kind == actors::RunEnd::Kind::failed) {
    launcher_.kill_all();
    launcher_.end_all(defaults::kill_workers_within);
  } else {
    caf::scoped_actor self{system_, true};
    self->monitor(heartbeat_);
    self->send(heartbeat_, actors::stop_atom::value);
    const bool cut_short
      = plan_.stops_at_once && end_->kind == actors::RunEnd::Kind::stopped;
    if (nodes_.empty() || cut_short)
      launcher_.kill_all();
    launcher_.end_all(defaults::shutdown_grace);
    // workers that others started: their order to end must be out first
    self->receive([](const caf::down_msg&) {},
                  caf::after(defaults::shutdown_grace) >> [] {});
  }
  end_actors();
  trace::stop();
}

/// Or the actor system waits for them for ever.
void Session::end_actors() {
  for (const auto& actor : ours_)
    caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
}

ExitCode Session::conclude() {
  if (plan_.on_end)
    plan_.on_end(*end_);
  const double wall_s = actors::Seconds{steady_clock::now() - started_}.count();
  switch (end_->kind) {
  case actors::RunEnd::Kind::done:
    if (basis_.best)
      basis_.best->finish();
    files_.conclude_done(*end_, wall_s);
    return ExitCode::done;
  case actors::RunEnd::Kind::stopped:
    files_.conclude_stopped(*end_, wall_s, signal_ == SIGINT);
    return signal_ == SIGINT ? ExitCode::interrupted : ExitCode::stopped;
  case actors::RunEnd::Kind::failed:
    files_.conclude_failed(*end_);
    return end_->failure.code == Errc::bad_input ? ExitCode::wrong_input
                                                 : ExitCode::failed;
  }
  return ExitCode::failed;
}

} // namespace

ExitCode run_session(const SessionPlan& session) {
  Session run{session};
  return run.run();
}

} // namespace troupe::runtime
