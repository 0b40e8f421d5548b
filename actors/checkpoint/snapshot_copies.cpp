#include "actors/checkpoint/snapshot_copies.hpp"

#include "config/base/log.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <vector>

namespace troupe::actors {

namespace {

/// Returns whether the failure ends or explains the attempt by itself.
bool is_of_the_attempt(const Failure& failure) {
  return failure.code == Errc::peer_lost || failure.code == Errc::aborted
         || failure.code == Errc::deadline;
}

} // namespace

void copy_to_other_nodes(Self<CheckpointActor, CheckpointActorState> self,
                         const Context& context, const SnapshotKey& key) {
  auto& state = self->state;
  const auto& nodes = state.setup.nodes;
  if (!state.setup.snapshots.has_copies || state.snapshots.gave_up_copies)
    return;
  state.snapshots.copying = true;
  std::vector<AskSpec> specs;
  for (std::uint32_t i = 0; i < nodes.size(); ++i)
    specs.push_back(
      {.name = fmt::format("copies of a snapshot on worker {}", i),
       .worker = WorkerId{i},
       .is_work = false}); // a step goes on meanwhile
  ask_all<SnapshotDone>(
    self, nodes, snapshot_atom::value, context,
    std::vector(nodes.size(), SnapshotCopyOrder{key}), std::move(specs),
    [=](const std::vector<SnapshotDone>&) {
      self->state.snapshots.copying = false;
    },
    [=](const Failure& failure) {
      self->state.snapshots.copying = false;
      if (is_of_the_attempt(failure))
        return;
      self->state.snapshots.gave_up_copies = true;
      log::runtime.warn("no copies of snapshots on other hosts any more: "
                        + to_string(failure));
    });
}

} // namespace troupe::actors
