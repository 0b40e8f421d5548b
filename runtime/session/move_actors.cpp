#include "runtime/session/move_actors.hpp"

#include "config/base/error.hpp"
#include "runtime/session/call_participants.hpp"

#include <algorithm>
#include <tuple>
#include <variant>

namespace troupe::runtime {

namespace {

/// Returns whether devices of the source may have to take part: GPUs of several
/// hosts. Each finds out what it sends, if anything.
bool may_send(const RunBasis& basis, const plans::Replica& source,
              const plans::Replica& target) {
  return basis.run.work.settings.cluster.device == "gpu"
         && basis.plan.cluster.nodes > 1 && source.id != target.id
         && !basis.workflow.role(target.role).ema;
}

/// Adds the source's devices, but for those that are targets: these send as
/// they receive.
void add_senders(const plans::Replica& source, const plans::Replica& target,
                 actors::MoveSetup& setup) {
  setup.order_of.assign(target.devices.size(), 0);
  for (const Rank rank : source.devices)
    setup.order_of.push_back(
      std::ranges::count(target.devices, rank) > 0 ? actors::no_order : 0);
  setup.senders = setup.sources;
  for (auto& local_mesh : setup.senders)
    for (auto& member : local_mesh.members)
      member += target.devices.size();
}

actors::MoveActor spawn_move(caf::actor_system& system, const RunBasis& basis,
                             const std::vector<actors::SetupDone>& ready,
                             const plans::Replica& source,
                             const plans::Replica& target,
                             const std::string& name) {
  actors::MoveSetup setup;
  setup.name = name;
  setup.source = source.id;
  setup.target = target.id;
  setup.sources = local_meshes_of(source, ready);
  setup.source_strategy = source.strategy;
  setup.targets = local_meshes_of(target, ready);
  setup.target_strategy = target.strategy;
  if (may_send(basis, source, target))
    add_senders(source, target, setup);
  setup.check = basis.run.work.settings.run.check_moves;
  setup.asks = basis.asks;
  return system.spawn(actors::move_actor, setup);
}

} // namespace

std::map<std::pair<ReplicaId, ReplicaId>, actors::MoveActor>
spawn_moves(caf::actor_system& system, const RunBasis& basis,
            const std::vector<actors::SetupDone>& ready) {
  std::map<std::pair<ReplicaId, ReplicaId>, actors::MoveActor> moves;
  for (const auto& task : basis.graph.tasks) {
    if (task.kind != plans::TaskKind::move
        && task.kind != plans::TaskKind::update)
      continue;
    moves[{*task.source, *task.target}]
      = spawn_move(system, basis, ready, basis.replicas[*task.source],
                   basis.replicas[*task.target], task.name);
  }
  return moves;
}

MoveCheckActors
spawn_move_check(caf::actor_system& system, const RunBasis& basis,
                 const std::vector<actors::SetupDone>& ready,
                 std::function<void(const actors::RunEnd&)> on_end) {
  TROUPE_CHECK(basis.replicas.all.size() == 2, "moves go between two replicas");
  const auto& [there, back]
    = std::tie(basis.replicas.all[0], basis.replicas.all[1]);
  const auto& options = std::get<MoveCheckMode>(basis.run.mode_options);
  actors::MoveCheckSetup setup;
  setup.moves = {spawn_move(system, basis, ready, there, back, back.name()),
                 spawn_move(system, basis, ready, back, there, there.name())};
  setup.incarnation = basis.incarnation;
  setup.at_least = options.at_least;
  setup.asks = basis.asks;
  setup.on_done = [on_end, on_moved = options.on_moved](
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

} // namespace troupe::runtime
