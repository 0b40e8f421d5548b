#include "runtime/session/master_actors.hpp"

#include "actors/calls/call_actor.hpp"
#include "actors/calls/residency_actor.hpp"
#include "actors/checkpoint/calls_in_flight.hpp"
#include "actors/checkpoint/checkpoint_actor.hpp"
#include "actors/worker_base/call_options.hpp"
#include "actors/worker_base/sample_log.hpp"
#include "plans/recovery/snapshot_planes.hpp"
#include "plans/workflow/evaluation.hpp"
#include "runtime/session/call_participants.hpp"
#include "runtime/session/data_actors.hpp"
#include "runtime/session/move_actors.hpp"
#include "runtime/session/replica_states.hpp"

#include <algorithm>
#include <variant>

namespace troupe::runtime {

namespace {

/// Returns a deadline after which the master gives up: later than a worker,
/// which reports a silent user-defined actor first because it knows the sample.
std::chrono::milliseconds progress_deadline(const ClusterSettings& cluster) {
  using namespace std::chrono_literals;
  return std::max<std::chrono::milliseconds>(
    defaults::progress_deadline,
    std::chrono::seconds(cluster.own_actor_timeout_s) + 30s);
}

std::map<std::string, actors::CallActor>
spawn_calls(caf::actor_system& system, const RunBasis& basis,
            const std::vector<actors::SetupDone>& ready) {
  const Settings& settings = basis.run.work.settings;
  const auto& workflow = basis.workflow;
  std::map<std::string, actors::CallActor> calls;
  for (const auto& call : workflow.calls) {
    actors::CallSetup setup;
    setup.call = call;
    if (call.kind == plans::CallKind::function) {
      place_function(basis, ready, setup);
    } else {
      const auto& replica = basis.replicas[basis.replicas.of_call(call.name)];
      setup.local_meshes = local_meshes_of(replica, ready);
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

std::map<ReplicaId, actors::ResidencyActor>
spawn_lives(caf::actor_system& system, const RunBasis& basis,
            const std::vector<actors::SetupDone>& ready) {
  std::map<ReplicaId, actors::ResidencyActor> residencies;
  for (const auto& replica : basis.replicas.all)
    residencies[replica.id] = system.spawn(
      actors::residency_actor,
      actors::ResidencySetup{replica.name(), local_meshes_of(replica, ready),
                             basis.asks});
  return residencies;
}

actors::CheckpointActor
spawn_checkpoint(caf::actor_system& system, const RunBasis& basis,
                 const std::vector<actors::SetupDone>& ready,
                 const std::vector<actors::NodeActor>& nodes) {
  actors::CheckpointSetup setup;
  setup.run_folder = basis.run.attempt.folder;
  setup.run_id = basis.run_id;
  setup.replicas = basis.replicas;
  setup.workflow = basis.workflow;
  setup.writers = writers_of(basis.replicas, ready);
  for (const auto& replica : basis.replicas.all)
    if (plans::is_in_snapshots(basis.workflow, basis.plan, replica))
      setup.snapshots.local_meshes[replica.id]
        = local_meshes_of(replica, ready);
  setup.snapshots.recorded = basis.recorded;
  setup.snapshots.plan = plans::print(basis.run.work.plan);
  setup.snapshots.loaded = basis.run.attempt.snapshot;
  setup.snapshots.has_copies
    = basis.run.steps.copies_snapshots && basis.plan.cluster.nodes > 1;
  setup.snapshots.incarnation = basis.incarnation;
  setup.nodes = nodes;
  setup.keep = static_cast<std::uint32_t>(basis.run.work.settings.run.keep);
  setup.best = basis.best;
  for (const auto& [role, shape] : basis.run.work.shapes)
    setup.stores[role]
      = {.dtype = saved_dtype(basis.run.work, role),
         .base_model = basis.run.work.settings.models.at(role).path};
  if (const auto* convert = std::get_if<ConvertMode>(&basis.run.mode_options))
    setup.stores[basis.workflow.roles.front().name] = convert->store;
  setup.asks = basis.asks;
  return system.spawn(actors::checkpoint_actor, setup);
}

/// Returns the setup of one step of the evaluation's graph over the shards of
/// `setup`, or null.
std::shared_ptr<const actors::MasterSetup>
evaluation_setup(caf::actor_system& system, const RunBasis& basis,
                 const actors::MasterSetup& setup, const MasterEvents& events) {
  if (!plans::evaluates(basis.run.work.settings))
    return nullptr;
  const auto alone = plans::evaluation_of(basis.workflow);
  return std::make_shared<const actors::MasterSetup>(actors::MasterSetup{
    .name = "evaluation",
    .dataflow
    = {.workflow = basis.workflow,
       .plan = basis.plan,
       .replicas = basis.replicas,
       .graph = plans::make_step_graph(alone, basis.plan, basis.replicas)},
    .start = {.incarnation = basis.incarnation},
    .rows = {.actor = spawn_evaluation_data(system, basis),
             .holder = actors::evaluation_holder,
             .samples_per_row
             = actors::samples_per_row(basis.run.work.settings, basis.workflow,
                                       /*evaluates=*/true)},
    .actors = {.calls = setup.actors.calls,
               .residencies = setup.actors.residencies,
               .nodes = setup.actors.nodes},
    .save = {.best = basis.best},
    .evaluates = true,
    .callbacks = {.on_step = events.on_evaluation, .on_stall = events.on_stall},
    .asks = basis.asks,
    .progress_deadline = progress_deadline(basis.run.work.settings.cluster)});
}

std::vector<caf::actor_addr> addresses_of(const actors::MasterSetup& setup) {
  std::vector<caf::actor_addr> all;
  for (const auto& [name, call] : setup.actors.calls)
    all.push_back(call.address());
  for (const auto& [pair, move] : setup.actors.moves)
    all.push_back(move.address());
  for (const auto& [replica, residency] : setup.actors.residencies)
    all.push_back(residency.address());
  const auto& evaluation = setup.evaluation.master;
  for (const auto& data : {setup.rows.actor, evaluation ? evaluation->rows.actor
                                                        : actors::DataActor{}})
    if (data)
      all.push_back(data.address());
  all.push_back(setup.save.actor.address());
  return all;
}

} // namespace

MasterActors spawn_master(caf::actor_system& system, const RunBasis& basis,
                          const std::vector<actors::SetupDone>& ready,
                          const std::vector<actors::NodeActor>& nodes,
                          MasterEvents events) {
  const PreparedRun& run = basis.run;
  const auto& eval = run.work.settings.eval;
  actors::MasterSetup setup{
    .dataflow = {.workflow = basis.workflow,
                 .plan = basis.plan,
                 .replicas = basis.replicas,
                 .graph = basis.graph,
                 .durations_s = basis.durations_s},
    .start = {.incarnation = basis.incarnation,
              .first_step = StepId{run.steps.first},
              .carried = basis.start.carried,
              .in_flight = actors::with_new_holders(
                basis.start.in_flight, run.work.plan.cluster.num_workers()),
              .versions = basis.start.versions},
    .end_step = StepId{run.steps.end},
    .rows = {.actor = spawn_data(system, basis),
             .samples_per_row
             = actors::samples_per_row(run.work.settings, basis.workflow,
                                       /*evaluates=*/false),
             .rounds = plans::rounds_of(basis.workflow)},
    .actors = {.calls = spawn_calls(system, basis, ready),
               .moves = spawn_moves(system, basis, ready),
               .residencies = spawn_lives(system, basis, ready),
               .nodes = nodes},
    .save
    = {.actor = spawn_checkpoint(system, basis, ready, nodes),
       .every = static_cast<std::uint32_t>(run.work.settings.run.save_every),
       .snapshot_every = run.steps.snapshot_every,
       .replicas = saved_replicas(basis),
       .best = basis.best},
    .evaluation = {.times = {.every = static_cast<std::uint32_t>(eval.every),
                             .at_start = eval.at_start,
                             .at_end = eval.at_end}},
    .callbacks = {.on_step = events.on_step,
                  .on_end = events.on_end,
                  .on_stall = events.on_stall},
    .asks = basis.asks,
    .progress_deadline = progress_deadline(run.work.settings.cluster)};
  setup.evaluation.master = evaluation_setup(system, basis, setup, events);
  MasterActors made{.master = {}, .all = addresses_of(setup)};
  made.master = system.spawn(actors::master_actor, std::move(setup));
  made.all.push_back(made.master.address());
  return made;
}

} // namespace troupe::runtime
