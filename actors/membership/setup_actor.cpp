#include "actors/membership/setup_actor.hpp"

#include "actors/protocol/device_names.hpp"

#include <fmt/format.h>

namespace troupe::actors {

namespace {

using SetupSelf = Self<SetupActor, SetupState>;

Context context_of_run(SetupSelf self) {
  return {
    .flow = 0, .step = StepId{}, .incarnation = self->state.setup.incarnation};
}

std::function<void(const Failure&)> to_parent(SetupSelf self) {
  return [=](const Failure& failure) { self->state.setup.on_failure(failure); };
}

void load_rows(SetupSelf self, const std::vector<SetupDone>& ready) {
  const auto& setup = self->state.setup;
  std::vector<NodeActor> targets;
  std::vector<LoadRowsOrder> orders;
  std::vector<AskSpec> specs;
  for (std::uint32_t worker = 0; worker < setup.rows.size(); ++worker) {
    if (setup.rows[worker].files.empty())
      continue;
    targets.push_back(setup.nodes.at(worker));
    orders.push_back(setup.rows[worker]);
    specs.push_back({.name = fmt::format("load of rows on worker {}", worker),
                     .worker = WorkerId{worker}});
  }
  ask_all<LoadDone>(
    self, targets, load_atom::value, context_of_run(self), std::move(orders),
    std::move(specs),
    [=](const std::vector<LoadDone>&) { self->state.setup.on_ready(ready); },
    to_parent(self));
}

void load_shards(SetupSelf self, const std::vector<SetupDone>& ready) {
  const auto& setup = self->state.setup;
  std::vector<LocalMeshActor> targets;
  std::vector<LocalMeshOrder<LoadOrder>> orders;
  std::vector<AskSpec> specs;
  for (std::uint32_t worker = 0; worker < ready.size(); ++worker)
    for (const auto& entry : ready[worker].local_meshes) {
      targets.push_back(entry.local_mesh);
      orders.push_back({{setup.loads.at(entry.replica.value).order},
                        std::vector<std::uint32_t>(entry.ranks.size(), 0)});
      specs.push_back(
        {.name = fmt::format("load of replica {} on {}", entry.replica.value,
                             device_names(entry.ranks)),
         .worker = WorkerId{worker}});
    }
  ask_all<LocalMeshDone<LoadDone>>(
    self, targets, load_atom::value, context_of_run(self), std::move(orders),
    std::move(specs),
    [=](const std::vector<LocalMeshDone<LoadDone>>&) {
      load_rows(self, ready);
    },
    to_parent(self));
}

void set_up(SetupSelf self) {
  const auto& setup = self->state.setup;
  std::vector<AskSpec> specs;
  for (std::uint32_t i = 0; i < setup.nodes.size(); ++i)
    specs.push_back(
      {.name = fmt::format("set-up of worker {}", i), .worker = WorkerId{i}});
  ask_all<SetupDone>(
    self, setup.nodes, setup_atom::value, context_of_run(self),
    std::vector(setup.nodes.size(),
                SetupOrder{setup.peers, setup.snapshot, setup.agents}),
    std::move(specs),
    [=](const std::vector<SetupDone>& ready) { load_shards(self, ready); },
    to_parent(self));
}

} // namespace

SetupActor::behavior_type setup_actor(SetupSelf self, SetupInputs setup) {
  self->state.asks = Asks{setup.asks};
  self->state.setup = std::move(setup);
  return {
    [=](start_atom) { set_up(self); },
    [=](fail_atom, std::uint64_t id, const FailureMessage& message) {
      self->state.asks.fail(id, to_failure(message));
    },
  };
}

} // namespace troupe::actors
