// The comparison of run.check_moves, in a scheduler that the test drives:
// shards are fakes that report checksums of published and received planes.
#include "actors/calls/move_actor.hpp"

#include "tests/support/actors/driven_actors.hpp"
#include <gmock/gmock.h>

namespace troupe::actors {
namespace {

using MetricSums = std::vector<std::uint64_t>; ///< by device of a replica

/// The devices of one worker.
LocalMeshActor::behavior_type local_mesh_fake(Self<LocalMeshActor, FakeState>,
                                              MetricSums sums) {
  return {
    [](load_atom, const Context&, const LocalMeshOrder<LoadOrder>&) {
      return LocalMeshDone<LoadDone>{};
    },
    [](fetch_atom, const Context&, const LocalMeshOrder<FetchOrder>&) {
      return LocalMeshDone<FetchDone>{};
    },
    [](run_atom, const Context&, const LocalMeshOrder<RunOrder>&) {
      return LocalMeshDone<RunDone>{};
    },
    [=](publish_weights_atom, const Context&,
        const LocalMeshOrder<PublishOrder>&) {
      LocalMeshDone<PublishDone> done;
      for (const auto sum : sums)
        done.parts.push_back({sum});
      return done;
    },
    [=](move_atom, const Context&, const LocalMeshOrder<MoveOrder>&) {
      LocalMeshDone<MoveDone> done;
      for (const auto sum : sums)
        done.parts.push_back({.bytes = 8, .checksum = sum});
      return done;
    },
    [](residency_atom, const Context&, const LocalMeshOrder<ResidencyOrder>&) {
      return LocalMeshDone<ResidencyDone>{};
    },
    [](snapshot_atom, const Context&, const LocalMeshOrder<SnapshotOrder>&) {
      return LocalMeshDone<SnapshotDone>{};
    },
    [](fail_atom, std::uint64_t, const FailureMessage&) {}};
}

class MoveActorTest : public DrivenActors {
protected:
  std::vector<LocalMesh> shards(const MetricSums& sums) {
    std::vector<LocalMesh> local_meshes;
    for (std::size_t i = 0; i < sums.size(); ++i)
      local_meshes.push_back(
        {.actor = spawn(local_mesh_fake, MetricSums{sums[i]}), .members = {i}});
    return local_meshes;
  }

  /// Returns the bytes moved from tensor halves to replicas, or why the move
  /// failed.
  std::string moved(const MetricSums& published, const MetricSums& arrived,
                    bool check) {
    const auto move = spawn(move_actor, MoveSetup{.name = "actor@actor_gen",
                                                  .source = ReplicaId{0},
                                                  .sources = shards(published),
                                                  .source_strategy = {.tp = 2},
                                                  .target_strategy = {.dp = 2},
                                                  .targets = shards(arrived),
                                                  .check = check,
                                                  .asks = asks_});
    std::string end;
    tell(
      spawn(client_actor, asks_,
            [&](ClientSelf self) {
              ask<MoveDone>(
                self, move, run_atom::value, Context{}, MoveTask{},
                {.name = "move"},
                [&](const MoveDone& done) { end = std::to_string(done.bytes); },
                [&](const Failure& failure) { end = failure.what; });
            }),
      start_atom::value);
    return end;
  }
};

TEST_F(MoveActorTest, EveryReplicaHasTheSumOfTheParts) {
  EXPECT_EQ(moved({3, 4}, {7, 7}, /*check=*/true), "16");
  EXPECT_EQ(moved({3, 4}, {7, 8}, /*check=*/true),
            "the weights that arrived differ from those that were sent");
  EXPECT_EQ(moved({3, 4}, {7, 8}, /*check=*/false), "16");
}

} // namespace
} // namespace troupe::actors
