#include "control_run.hpp"

#include "actors/calls/call_actor.hpp"
#include "actors/calls/data_actor.hpp"
#include "actors/master/master_actor.hpp"
#include "actors/membership/endpoint.hpp"
#include "actors/membership/heartbeat_actor.hpp"
#include "actors/membership/join_actor.hpp"
#include "actors/membership/setup_actor.hpp"
#include "actors/protocol/system.hpp"
#include "config/base/atomic_file.hpp"
#include "config/base/defaults.hpp"
#include "config/settings/settings.hpp"
#include "runtime/base/event_queue.hpp"
#include "runtime/launch/launcher.hpp"
#include "runtime/run_folder/run_secret.hpp"
#include "runtime/session/run_basis.hpp"
#include "runtime/session/session_setup.hpp"
#include "runtime/session/worker.hpp"

#include "troupe_run.hpp"

#include <fstream>
#include <stdexcept>
#include <variant>

namespace troupe::bench {
inline namespace control_run_parts { // named: ControlRun::Impl holds them

using actors::Joined;

constexpr auto patience = std::chrono::seconds{60};

// Stands in for the data set and the checkpoints: no rows, nothing to write.
actors::DataActor::behavior_type no_rows(actors::DataActor::pointer) {
  return {[](actors::next_atom, const actors::Context&,
             const actors::NextOrder&) { return actors::DataBatch{}; }};
}

actors::CheckpointActor::behavior_type
no_checkpoint(actors::CheckpointActor::pointer) {
  return {
    [](actors::save_atom, const actors::Context&, const actors::SaveTask&) {
      return actors::SaveCopied{};
    },
    [](actors::write_atom, const actors::Context&, const actors::WriteTask&) {
      return actors::SaveDone{};
    },
    [](actors::done_atom, std::uint64_t) {},
    [](actors::fail_atom, std::uint64_t, const actors::FailureMessage&) {}};
}

struct Loaded {
  std::vector<actors::SetupDone> ready;
};
using Event = std::variant<std::vector<Joined>, Loaded, actors::StepReport,
                           actors::RunEnd, Failure>;

runtime::PreparedRun prepared_in(const CardFolder& folder) {
  auto words = folder.ppo_settings();
  words.insert(words.end(),
               {"run.name=control", "run.steps=1", "cluster.nodes=1",
                "cluster.devices_per_node=2", "cluster.workers_per_node=2",
                "cluster.device=cpu", "plan=data_parallel"});
  return runtime::prepare(load_settings({"/dev/null"}, words));
}

std::string call_on(std::uint32_t worker) {
  return "empty call on worker " + std::to_string(worker);
}

/// Without encryption, with the token alone, for comparison.
runtime::RunSecret secret_of(bool encrypted) {
  auto secret = runtime::make_run_secret(/*encrypts_data=*/false);
  if (!encrypted) {
    secret.tls = nullptr;
    secret.text = secret.token + "\n";
  }
  return secret;
}

} // namespace control_run_parts

struct ControlRun::Impl {
  Impl(const CardFolder& folder, bool encrypted)
    : run(prepared_in(folder)),
      lock(runtime::begin_attempt(run)),
      basis(runtime::make_basis(run, "bench")),
      system(config),
      secret(secret_of(encrypted)),
      endpoint(system, secret.tls) {}

  // Also when the start failed half-way: the actor system waits for its actors.
  ~Impl() {
    caf::anon_send(heartbeat, actors::stop_atom::value);
    launcher.end_all(defaults::shutdown_grace);
    for (const auto& actor : ours)
      caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
  }

  void lost(WorkerId worker, const std::string& why) {
    events.push(Failure{.code = Errc::peer_lost,
                        .who = "worker " + std::to_string(worker.value),
                        .what = "is gone",
                        .cause = why});
  }

  // Returns the next event if it is the expected one.
  template <class Wanted>
  Wanted wait_for() {
    auto event = events.pop_until(std::chrono::steady_clock::now() + patience);
    if (!event)
      throw std::runtime_error("the control plane is silent");
    if (auto* failure = std::get_if<Failure>(&*event))
      throw FailureError{*failure};
    if (auto* wanted = std::get_if<Wanted>(&*event))
      return std::move(*wanted);
    throw std::runtime_error("the control plane ended early");
  }

  void start_workers();
  void load();
  actors::MasterSetup master_setup(std::uint32_t tasks, std::uint32_t steps,
                                   bool chained);
  std::map<std::string, actors::CallActor> spawn_calls();
  void keep(const caf::actor_addr& actor) {
    ours.push_back(actor);
  }

  runtime::PreparedRun run;
  std::shared_ptr<runtime::RunLock> lock;
  runtime::RunBasis basis;
  runtime::EventQueue<Event> events;
  runtime::Launcher launcher;
  actors::SystemConfig config{0};
  caf::actor_system system;
  runtime::RunSecret secret;
  actors::Endpoint endpoint;
  actors::HeartbeatActor heartbeat;
  actors::JoinActor join_actor;
  actors::SetupActor setup;
  std::vector<actors::NodeActor> nodes;
  std::vector<actors::SetupDone> ready;
  std::vector<caf::actor_addr> ours;
};

void ControlRun::Impl::start_workers() {
  const runtime::RunFolder folder(run.attempt.folder);
  const auto token_file = std::filesystem::absolute(folder.secret_file());
  replace_private_file(token_file, secret.text);
  heartbeat = system.spawn(
    actors::heartbeat_actor,
    actors::HeartbeatSetup{
      .asks = basis.asks,
      .on_suspect = [](WorkerId, bool) {},
      .on_lost
      = [this](WorkerId worker, Failure why) { lost(worker, why.what); }});
  keep(heartbeat.address());
  auto orders = runtime::make_join_actor(basis, secret);
  orders.on_full
    = [this](std::vector<Joined> all) { events.push(std::move(all)); };
  orders.heartbeat = heartbeat;
  join_actor = system.spawn(actors::join_actor, std::move(orders));
  keep(join_actor.address());
  const auto port = endpoint.open(join_actor, "127.0.0.1", 0);
  launcher.start({.program = runtime::user_program(),
                  .address = "127.0.0.1:" + std::to_string(port),
                  .token_file = token_file,
                  .cluster = run.work.plan.cluster,
                  .threads = 1,
                  .environment = {},
                  .folder = folder},
                 [this](WorkerId worker, const net::ChildExit& exit) {
                   lost(worker, to_string(exit));
                 });
}

void ControlRun::Impl::load() {
  auto orders = runtime::make_setup(basis, wait_for<std::vector<Joined>>());
  nodes = orders.nodes;
  orders.on_ready = [this](std::vector<actors::SetupDone> all) {
    events.push(Loaded{std::move(all)});
  };
  orders.on_failure = [this](Failure failure) { events.push(failure); };
  setup = system.spawn(actors::setup_actor, std::move(orders));
  keep(setup.address());
  caf::anon_send(setup, actors::start_atom::value);
  ready = wait_for<Loaded>().ready;
}

// One call actor per worker, which sends requests to the reference model's
// shard there.
std::map<std::string, actors::CallActor> ControlRun::Impl::spawn_calls() {
  std::map<std::string, actors::CallActor> calls;
  const ReplicaId replica = basis.replicas.of_call("ref_inf");
  for (std::uint32_t worker = 0; worker < ready.size(); ++worker) {
    actors::CallSetup orders;
    orders.call = basis.workflow.call("ref_inf");
    orders.asks = basis.asks;
    for (const auto& entry : ready[worker].local_meshes)
      if (entry.replica == replica)
        orders.local_meshes.push_back(
          {entry.local_mesh, WorkerId{worker}, call_on(worker), {0}});
    calls[call_on(worker)] = system.spawn(actors::call_actor, orders);
    keep(calls[call_on(worker)].address());
  }
  return calls;
}

actors::MasterSetup ControlRun::Impl::master_setup(std::uint32_t tasks,
                                                   std::uint32_t steps,
                                                   bool chained) {
  actors::MasterSetup orders;
  orders.dataflow.workflow.roles = {basis.workflow.role("ref")};
  for (std::uint32_t worker = 0; worker < nodes.size(); ++worker) {
    plans::Call call = basis.workflow.call("ref_inf");
    call.name = call_on(worker);
    call.reads.clear();
    call.writes.clear();
    orders.dataflow.workflow.calls.push_back(call);
    orders.dataflow.replicas.all.push_back({.id = ReplicaId{worker},
                                            .role = "ref",
                                            .devices = {Rank{worker}},
                                            .home = worker == 0,
                                            .calls = {call.name}});
  }
  for (std::uint32_t i = 0; i < tasks; ++i) {
    const auto worker = i % static_cast<std::uint32_t>(nodes.size());
    plans::TaskTemplate task;
    task.name = "empty " + std::to_string(i);
    task.call = call_on(worker);
    task.role = "ref";
    task.devices = {Rank{worker}};
    if (chained && i > 0)
      task.needs = {{i - 1, 0, plans::Edge::data}};
    orders.dataflow.graph.tasks.push_back(task);
  }
  orders.dataflow.plan = run.work.plan;
  orders.start.incarnation = basis.incarnation;
  orders.end_step = StepId{steps};
  orders.actors.calls = spawn_calls();
  orders.rows.actor = system.spawn(no_rows);
  orders.save.actor = system.spawn(no_checkpoint);
  orders.actors.nodes = nodes;
  orders.asks = basis.asks;
  orders.callbacks.on_step
    = [this](const auto& report) { events.push(report); };
  orders.callbacks.on_end
    = [this](const actors::RunEnd& end) { events.push(end); };
  keep(orders.rows.actor.address());
  keep(orders.save.actor.address());
  return orders;
}

ControlRun::ControlRun(const CardFolder& folder, bool encrypted)
  : impl_(std::make_unique<Impl>(folder, encrypted)) {
  impl_->start_workers();
  impl_->load();
}

ControlRun::~ControlRun() = default;

std::vector<double> ControlRun::run(std::uint32_t tasks, std::uint32_t steps,
                                    bool chained) {
  const auto master = impl_->system.spawn(
    actors::master_actor, impl_->master_setup(tasks, steps, chained));
  impl_->keep(master.address());
  caf::anon_send(impl_->heartbeat, actors::ping_atom::value,
                 actors::HeartbeatListener{master});
  caf::anon_send(master, actors::start_atom::value);
  std::vector<double> seconds;
  for (std::uint32_t i = 0; i < steps; ++i) {
    const auto report = impl_->wait_for<actors::StepReport>();
    if (report.tasks.size() != tasks)
      throw std::runtime_error(
        "a step ran " + std::to_string(report.tasks.size()) + " tasks");
    seconds.push_back(report.duration.count());
  }
  const auto end = impl_->wait_for<actors::RunEnd>();
  if (end.kind != actors::RunEnd::Kind::done)
    throw FailureError{end.failure};
  return seconds;
}

} // namespace troupe::bench
