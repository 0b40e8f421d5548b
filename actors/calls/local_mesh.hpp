// The devices of a replica as the master sees them: by worker. An order goes to
// each worker once, with what its devices are to do; their replies come back in
// mesh order, as if every device had been asked itself.
#pragma once

#include "actors/protocol/ask.hpp"

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace troupe::actors {

/// The devices of a replica on one worker.
struct LocalMesh {
  LocalMeshActor actor;
  WorkerId worker;
  std::string name;                 ///< "device 3", "devices 0-7"
  std::vector<std::size_t> members; ///< indices into the mesh, ascending
};

/// Orders of the devices of a mesh.
template <class Order>
struct MeshOrder {
  std::vector<Order> orders;
  /// Index into `orders` per device, or no_order; empty: all have the first.
  std::vector<std::uint32_t> order_of = {};
};

/// Returns the part of a local mesh; nothing if none of its devices has an
/// order.
template <class Order>
std::optional<LocalMeshOrder<Order>> part_of(const MeshOrder<Order>& mesh,
                                             const LocalMesh& local_mesh) {
  LocalMeshOrder<Order> part;
  std::vector<std::uint32_t> sent(mesh.orders.size(), no_order);
  for (const auto member : local_mesh.members) {
    const auto number = mesh.order_of.empty() ? 0 : mesh.order_of.at(member);
    if (number != no_order && sent.at(number) == no_order) {
      sent[number] = static_cast<std::uint32_t>(part.orders.size());
      part.orders.push_back(mesh.orders[number]);
    }
    part.order_of.push_back(number == no_order ? no_order : sent[number]);
  }
  return part.orders.empty() ? std::nullopt : std::optional{std::move(part)};
}

/// Sends each local mesh its part; calls exactly one of
/// `on_all(std::vector<Done>)`, in mesh order, and `on_failure`, once.
/// `name_of` names the request to a local mesh.
template <class Done, class SelfPointer, class Atom, class Order, class OnAll,
          class OnFailure>
void ask_local_meshes(
  SelfPointer self, const std::vector<LocalMesh>& local_meshes, Atom atom,
  const Context& context, const MeshOrder<Order>& mesh,
  const std::function<std::string(const LocalMesh&)>& name_of, OnAll on_all,
  OnFailure on_failure) {
  std::vector<LocalMeshActor> targets;
  std::vector<LocalMeshOrder<Order>> orders;
  std::vector<AskSpec> specs;
  std::vector<std::vector<std::size_t>> members;
  std::size_t num_devices = 0;
  for (const auto& local_mesh : local_meshes) {
    num_devices += local_mesh.members.size();
    auto part = part_of(mesh, local_mesh);
    if (!part)
      continue;
    targets.push_back(local_mesh.actor);
    orders.push_back(std::move(*part));
    specs.push_back({.name = name_of(local_mesh), .worker = local_mesh.worker});
    members.push_back(local_mesh.members);
  }
  ask_all<LocalMeshDone<Done>>(
    self, targets, atom, context, std::move(orders), std::move(specs),
    [=, members = std::move(members)](
      std::vector<LocalMeshDone<Done>> replies) mutable {
      std::vector<Done> done(num_devices);
      for (std::size_t i = 0; i < replies.size(); ++i)
        for (std::size_t k = 0; k < members[i].size(); ++k)
          done.at(members[i][k]) = std::move(replies[i].parts.at(k));
      on_all(std::move(done));
    },
    on_failure);
}

} // namespace troupe::actors
