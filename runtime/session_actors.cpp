#include "runtime/session_actors.hpp"

#include "actors/call_actor.hpp"
#include "actors/call_options.hpp"
#include "actors/checkpoint_actor.hpp"
#include "actors/checkpoint_files.hpp"
#include "actors/data_actor.hpp"
#include "actors/life_actor.hpp"
#include "actors/move_actor.hpp"
#include "actors/recording.hpp"
#include "actors/worker_context.hpp"
#include "plans/evaluation.hpp"
#include "plans/replica_life.hpp"
#include "runtime/auto_plan.hpp"
#include "runtime/call_members.hpp"
#include "runtime/checkpoint_fit.hpp"
#include "runtime/metrics/step_metrics.hpp"
#include "runtime/run_folder.hpp"

#include <fmt/format.h>

#include <tuple>

namespace troupe::runtime {

namespace {

/// A silent own actor is told on by its worker, which knows the sample, first.
std::chrono::milliseconds progress_deadline(const ClusterSettings& cluster) {
  using namespace std::chrono_literals;
  return std::max<std::chrono::milliseconds>(
    defaults::progress_deadline,
    std::chrono::seconds(cluster.own_actor_timeout_s) + 30s);
}

std::map<std::string, actors::CallActor>
spawn_calls(caf::actor_system& system, const RunBasis& basis,
            const std::vector<actors::SetupDone>& ready) {
  const Settings& settings = basis.session.settings;
  const auto& workflow = basis.workflow;
  std::map<std::string, actors::CallActor> calls;
  for (const auto& call : workflow.calls) {
    actors::CallSetup setup;
    setup.call = call;
    if (call.kind == plans::CallKind::function) {
      place_function(basis, ready, setup);
    } else {
      const auto& replica = basis.replicas[basis.replicas.of_call(call.name)];
      setup.members = members_of(basis, replica, ready);
      setup.strategy = replica.strategy;
    }
    setup.samples_per_group
      = actors::samples_per_row(settings, workflow, call.evaluates);
    setup.mini_batches = actors::mini_batches_of(settings, workflow);
    setup.epochs = actors::epochs_of(settings, workflow);
    setup.asks = basis.asks;
    calls[call.name] = system.spawn(actors::call_actor, setup);
  }
  return calls;
}

actors::MoveActor spawn_move(caf::actor_system& system, const RunBasis& basis,
                             const std::vector<actors::SetupDone>& ready,
                             const plans::Replica& source,
                             const plans::Replica& target) {
  actors::MoveSetup setup;
  setup.name = target.name();
  setup.source = source.id;
  setup.sources = members_of(basis, source, ready);
  setup.source_strategy = source.strategy;
  setup.targets = members_of(basis, target, ready);
  setup.target_strategy = target.strategy;
  setup.check = basis.session.settings.run.check_moves;
  setup.asks = basis.asks;
  return system.spawn(actors::move_actor, setup);
}

std::map<std::pair<ReplicaId, ReplicaId>, actors::MoveActor>
spawn_moves(caf::actor_system& system, const RunBasis& basis,
            const std::vector<actors::SetupDone>& ready) {
  std::map<std::pair<ReplicaId, ReplicaId>, actors::MoveActor> moves;
  for (const auto& task : basis.graph.tasks) {
    if (task.kind != plans::TaskKind::move)
      continue;
    moves[{*task.source, *task.target}]
      = spawn_move(system, basis, ready, basis.replicas[*task.source],
                   basis.replicas[*task.target]);
  }
  return moves;
}

std::map<ReplicaId, actors::LifeActor>
spawn_lives(caf::actor_system& system, const RunBasis& basis,
            const std::vector<actors::SetupDone>& ready) {
  std::map<ReplicaId, actors::LifeActor> lives;
  for (const auto& replica : basis.replicas.all)
    lives[replica.id] = system.spawn(
      actors::life_actor,
      actors::LifeSetup{replica.name(), members_of(basis, replica, ready),
                        basis.asks});
  return lives;
}

actors::CheckpointActor
spawn_checkpoint(caf::actor_system& system, const RunBasis& basis,
                 const std::vector<actors::SetupDone>& ready,
                 const std::vector<actors::NodeActor>& nodes) {
  actors::CheckpointSetup setup;
  setup.run_folder = basis.session.run_folder;
  setup.run_id = basis.run_id;
  setup.replicas = basis.replicas;
  setup.workflow = basis.workflow;
  for (const auto& replica : basis.replicas.all)
    setup.writers[replica.id] = members_of(basis, replica, ready).front();
  setup.nodes = nodes;
  setup.keep = static_cast<std::uint32_t>(basis.session.settings.run.keep);
  setup.best = basis.best;
  for (const auto& [role, shape] : basis.session.shapes)
    setup.stores[role] = {.dtype = saved_dtype(basis.session, role)};
  if (const auto& store = basis.session.convert_to)
    setup.stores[basis.workflow.roles.front().name] = *store;
  setup.asks = basis.asks;
  return system.spawn(actors::checkpoint_actor, setup);
}

/// None where the workflow reads no data set.
actors::DataActor spawn_data(caf::actor_system& system, const RunBasis& basis) {
  const Settings& settings = basis.session.settings;
  if (basis.workflow.dataset_keys.empty() || basis.session.only_evaluates)
    return {};
  const auto dataset = std::make_shared<const models::Dataset>(
    actors::open_dataset(settings, basis.session.workflow));
  const auto order = models::data_order(settings, dataset->size());
  return system.spawn(actors::data_actor, actors::DataSetup{dataset, order});
}

/// The rows of an evaluation, all of them each time.
actors::DataActor spawn_evaluation_data(caf::actor_system& system,
                                        const RunBasis& basis) {
  const Settings& settings = basis.session.settings;
  const auto dataset = std::make_shared<const models::Dataset>(
    actors::open_evaluation(settings, basis.workflow));
  auto rows = dataset->size();
  if (settings.eval.max_rows > 0)
    rows = std::min(rows, static_cast<std::uint32_t>(settings.eval.max_rows));
  const models::DataOrder order{rows, rows, settings.run.seed, false};
  return system.spawn(actors::data_actor, actors::DataSetup{dataset, order});
}

/// A step of the evaluation's graph over the shards of `setup`, or nothing.
std::shared_ptr<const actors::MasterSetup>
evaluation_setup(caf::actor_system& system, const RunBasis& basis,
                 const actors::MasterSetup& setup, const MasterEvents& events) {
  if (!plans::evaluates(basis.session.settings))
    return nullptr;
  const auto alone = plans::evaluation_of(basis.workflow);
  return std::make_shared<const actors::MasterSetup>(actors::MasterSetup{
    .name = "evaluation",
    .workflow = setup.workflow,
    .plan = setup.plan,
    .replicas = setup.replicas,
    .graph = plans::make_step_graph(alone, setup.plan, setup.replicas),
    .incarnation = setup.incarnation,
    .samples_per_row
    = actors::samples_per_row(basis.session.settings, basis.workflow,
                              /*evaluates=*/true),
    .calls = setup.calls,
    .lives = setup.lives,
    .data = spawn_evaluation_data(system, basis),
    .nodes = setup.nodes,
    .data_holder = actors::evaluation_holder,
    .best = setup.best,
    .evaluates = true,
    .asks = setup.asks,
    .on_step = events.on_evaluation,
    .progress_deadline = progress_deadline(basis.session.settings.cluster),
    .on_stall = events.on_stall});
}

/// By how many versions a replica is behind home's between two steps: a move
/// waits for the calls that lag, so a lagged replica is at the version before.
std::uint32_t lag_of(const RunBasis& basis, const plans::Replica& replica) {
  return is_lagged(basis.workflow, replica, basis.session.plan) ? 1 : 0;
}

/// Version of each replica after `steps` committed steps.
Version version_after(const RunBasis& basis, const plans::Replica& replica,
                      StepId steps) {
  return plans::version_for(basis.workflow.role(replica.role), steps,
                            lag_of(basis, replica));
}

/// Replicas that a continued run must find again: the homes of roles that
/// change, and lagged replicas, whose version is older than home's. All that
/// `convert` loads is there to be saved.
std::vector<actors::SavedReplica> saved_replicas(const RunBasis& basis) {
  std::vector<actors::SavedReplica> saved;
  for (const auto& replica : basis.replicas.all) {
    const auto lag = lag_of(basis, replica);
    const bool kept = basis.session.convert_to.has_value()
                      || basis.workflow.role(replica.role).changes();
    if (kept && (replica.home || lag > 0))
      saved.push_back({replica.id, lag});
  }
  return saved;
}

/// With the values of earlier attempts.
std::shared_ptr<actors::BestCheckpoint>
best_checkpoint(const SessionPlan& session) {
  const auto& metric = session.settings.run.keep_best;
  if (metric.empty())
    return nullptr;
  auto best = std::make_shared<actors::BestCheckpoint>(
    session.run_folder, metric, !session.settings.eval.data.empty(),
    StepId{session.num_steps});
  const RunFolder folder(session.run_folder);
  if (session.resuming)
    for (const auto steps : folder.checkpoints())
      if (const auto value
          = last_metrics(folder.metrics_file(), steps).find(metric))
        best->consider(StepId{steps}, *value);
  return best;
}

} // namespace

RunBasis make_basis(const SessionPlan& session, const std::string& run_id) {
  const auto [workflow, plan] = actors::run_calls(
    session.workflow, session.plan, session.settings, session.only_evaluates);
  const auto replicas = plans::replicas_of(workflow, plan);
  const auto training = plans::without_evaluation(workflow);
  RunBasis basis{.session = session,
                 .workflow = workflow,
                 .plan = plan,
                 .replicas = replicas,
                 .graph = plans::make_step_graph(
                   training, plan, plans::replicas_of(training, plan)),
                 .durations_s = {},
                 .incarnation = Incarnation{session.attempt},
                 .run_id = run_id,
                 .asks = std::make_shared<actors::AskTable>(),
                 .best = best_checkpoint(session),
                 .versions = {},
                 .carried = {},
                 .early = {}};
  if (!session.only_evaluates && !is_verb_workflow(session.settings.workflow))
    basis.durations_s = predicted_task_seconds(
      session.settings, training, session.shapes, plan, basis.graph);
  for (const auto& value : workflow.carried)
    basis.carried[value.name] = value.initial;
  if (session.checkpoint) {
    auto state = actors::read_checkpoint(*session.checkpoint);
    for (const auto& [name, value] : state.carried)
      basis.carried[name] = value;
    basis.early = std::move(state.early);
  }
  for (const auto& replica : replicas.all)
    if (!plans::is_dropped(workflow, plan, replica))
      basis.versions[replica.id]
        = version_after(basis, replica, StepId{session.first_step});
  return basis;
}

actors::Welcome make_welcome(const RunBasis& basis) {
  const SessionPlan& session = basis.session;
  actors::Welcome welcome;
  welcome.incarnation = basis.incarnation;
  welcome.run_id = basis.run_id;
  welcome.settings_yaml = print_settings(session.settings);
  welcome.plan_yaml = plans::print(session.plan);
  welcome.only_evaluates = session.only_evaluates;
  for (const auto& [call, room] : session.report.rooms)
    welcome.rooms[call] = {room.answers, room.cache_bytes};
  welcome.run_folder = std::filesystem::absolute(session.run_folder).string();
  return welcome;
}

std::vector<actors::LoadSpec> load_specs(const RunBasis& basis) {
  const SessionPlan& session = basis.session;
  std::vector<actors::LoadSpec> specs;
  for (const auto& replica : basis.replicas.all) {
    actors::LoadOrder order;
    const bool waits = plans::is_dropped(basis.workflow, basis.plan, replica);
    order.version = version_after(basis, replica, StepId{session.first_step});
    order.folder = session.settings.models.at(replica.role).path;
    order.shape_only
      = waits || (session.move_check.count() > 0 && !replica.home);
    const auto& role = basis.workflow.role(replica.role);
    if (role.changes() && session.checkpoint) {
      const bool home_version = replica.home || role.follows
                                || order.version == Version{session.first_step};
      order.folder = actors::weights_folder(*session.checkpoint, replica.role,
                                            replica.name(), home_version)
                       .string();
      const auto state
        = actors::optimizer_file(*session.checkpoint, replica.role);
      if (home_version && (role.trained || std::filesystem::exists(state)))
        order.state_file = state.string();
    }
    specs.push_back({replica.id, order});
  }
  return specs;
}

MoveCheckActors
spawn_move_check(caf::actor_system& system, const RunBasis& basis,
                 const std::vector<actors::SetupDone>& ready,
                 std::function<void(const actors::RunEnd&)> on_end) {
  TROUPE_CHECK(basis.replicas.all.size() == 2, "moves go between two replicas");
  const auto& [there, back]
    = std::tie(basis.replicas.all[0], basis.replicas.all[1]);
  actors::MoveCheckSetup setup;
  setup.moves = {spawn_move(system, basis, ready, there, back),
                 spawn_move(system, basis, ready, back, there)};
  setup.incarnation = basis.incarnation;
  setup.at_least = basis.session.move_check;
  setup.asks = basis.asks;
  setup.on_done = [on_end, on_moved = basis.session.on_moved](
                    const actors::MoveCheckResult& result) {
    on_moved(result);
    on_end({.kind = actors::RunEnd::Kind::done});
  };
  setup.on_failure = [on_end](const Failure& failure) {
    on_end({.kind = actors::RunEnd::Kind::failed, .failure = failure});
  };
  MoveCheckActors made;
  for (const auto& move : setup.moves)
    made.all.push_back(move.address());
  made.check = system.spawn(actors::move_check_actor, std::move(setup));
  made.all.push_back(made.check.address());
  return made;
}

MasterActors spawn_master(caf::actor_system& system, const RunBasis& basis,
                          const std::vector<actors::SetupDone>& ready,
                          const std::vector<actors::NodeActor>& nodes,
                          MasterEvents events) {
  const SessionPlan& session = basis.session;
  const auto& eval = session.settings.eval;
  actors::MasterSetup setup{
    .workflow = basis.workflow,
    .plan = basis.plan,
    .replicas = basis.replicas,
    .graph = basis.graph,
    .durations_s = basis.durations_s,
    .incarnation = basis.incarnation,
    .first_step = StepId{session.first_step},
    .end_step = StepId{session.num_steps},
    .samples_per_row
    = actors::samples_per_row(basis.session.settings, basis.workflow,
                              /*evaluates=*/false),
    .save_every = static_cast<std::uint32_t>(session.settings.run.save_every),
    .saved = saved_replicas(basis),
    .carried = basis.carried,
    .early
    = actors::with_new_holders(basis.early, session.plan.cluster.num_workers()),
    .versions = basis.versions,
    .calls = spawn_calls(system, basis, ready),
    .moves = spawn_moves(system, basis, ready),
    .lives = spawn_lives(system, basis, ready),
    .data = spawn_data(system, basis),
    .checkpoint = spawn_checkpoint(system, basis, ready, nodes),
    .nodes = nodes,
    .evaluation_times = {.every = static_cast<std::uint32_t>(eval.every),
                         .at_start = eval.at_start,
                         .at_end = eval.at_end},
    .best = basis.best,
    .asks = basis.asks,
    .on_step = events.on_step,
    .on_end = events.on_end,
    .progress_deadline = progress_deadline(session.settings.cluster),
    .on_stall = events.on_stall};
  setup.evaluation = evaluation_setup(system, basis, setup, events);
  MasterActors made;
  for (const auto& [name, call] : setup.calls)
    made.all.push_back(call.address());
  for (const auto& [pair, move] : setup.moves)
    made.all.push_back(move.address());
  for (const auto& [replica, life] : setup.lives)
    made.all.push_back(life.address());
  for (const auto& data : {setup.data, setup.evaluation ? setup.evaluation->data
                                                        : actors::DataActor{}})
    if (data)
      made.all.push_back(data.address());
  made.all.push_back(setup.checkpoint.address());
  made.master = system.spawn(actors::master_actor, std::move(setup));
  made.all.push_back(made.master.address());
  return made;
}

} // namespace troupe::runtime
