#include "actors/worker/local_mesh_actor.hpp"

#include <fmt/format.h>

namespace troupe::actors {

namespace {

using LocalMeshSelf = Self<LocalMeshActor, LocalMeshState>;

/// Returns the reply of all devices; `done` are those of `members`.
template <class Done>
LocalMeshDone<Done> joined(std::size_t num_devices,
                           const std::vector<std::size_t>& members,
                           std::vector<Done> done) {
  LocalMeshDone<Done> all{std::vector<Done>(num_devices)};
  for (std::size_t i = 0; i < members.size(); ++i)
    all.parts[members[i]] = std::move(done[i]);
  return all;
}

template <class Done, class Atom, class Order>
caf::result<LocalMeshDone<Done>> hand_out(LocalMeshSelf self, Atom atom,
                                          const Context& context,
                                          const LocalMeshOrder<Order>& order) {
  const LocalMeshSetup& setup = self->state.setup;
  const auto num_devices = setup.shards.size();
  TROUPE_CHECK(order.order_of.size() == num_devices,
               self->state.name + " got an order for other devices");
  std::vector<std::size_t> members;
  std::vector<ShardActor> targets;
  std::vector<Order> orders;
  std::vector<AskSpec> specs;
  for (std::size_t i = 0; i < num_devices; ++i) {
    if (order.order_of[i] == no_order)
      continue;
    members.push_back(i);
    targets.push_back(setup.shards[i]);
    orders.push_back(order.orders.at(order.order_of[i]));
    specs.push_back({.name = fmt::format("{} of {} on device {}",
                                         caf::to_string(Atom::get_value()),
                                         setup.replica, setup.ranks[i].value)});
  }
  Reply<LocalMeshDone<Done>> reply{self, context};
  ask_all<Done>(
    self, targets, atom, context, std::move(orders), std::move(specs),
    [=](std::vector<Done> done) mutable {
      reply.deliver(joined(num_devices, members, std::move(done)));
    },
    [=](const Failure& failure) mutable { reply.fail(failure); });
  return reply.promise();
}

} // namespace

LocalMeshActor::behavior_type local_mesh_actor(LocalMeshSelf self,
                                               LocalMeshSetup setup) {
  // "local mesh" in front: what comes after a slash is a device to readers of
  // traces
  self->state.name
    = fmt::format("local mesh {} {}", setup.replica, setup.worker.value);
  self->state.asks = Asks{setup.asks};
  self->state.setup = std::move(setup);
  return {
    [=](load_atom atom, const Context& context,
        const LocalMeshOrder<LoadOrder>& order) {
      return hand_out<LoadDone>(self, atom, context, order);
    },
    [=](fetch_atom atom, const Context& context,
        const LocalMeshOrder<FetchOrder>& order) {
      return hand_out<FetchDone>(self, atom, context, order);
    },
    [=](run_atom atom, const Context& context,
        const LocalMeshOrder<RunOrder>& order) {
      return hand_out<RunDone>(self, atom, context, order);
    },
    [=](publish_weights_atom atom, const Context& context,
        const LocalMeshOrder<PublishOrder>& order) {
      return hand_out<PublishDone>(self, atom, context, order);
    },
    [=](move_atom atom, const Context& context,
        const LocalMeshOrder<MoveOrder>& order) {
      return hand_out<MoveDone>(self, atom, context, order);
    },
    [=](residency_atom atom, const Context& context,
        const LocalMeshOrder<ResidencyOrder>& order) {
      return hand_out<ResidencyDone>(self, atom, context, order);
    },
    [=](snapshot_atom atom, const Context& context,
        const LocalMeshOrder<SnapshotOrder>& order) {
      return hand_out<SnapshotDone>(self, atom, context, order);
    },
    [=](fail_atom, std::uint64_t id, const FailureMessage& message) {
      self->state.asks.fail(id, to_failure(message));
    },
  };
}

} // namespace troupe::actors
