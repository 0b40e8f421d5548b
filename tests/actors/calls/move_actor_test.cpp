// The comparison of run.check_moves, in a scheduler that the test drives:
// shards are fakes that report checksums of published and received planes.
#include "actors/calls/move_actor.hpp"

#include "tests/support/actors/driven_actors.hpp"
#include <gmock/gmock.h>

namespace troupe::actors {
namespace {

using MetricSums = std::vector<std::uint64_t>; ///< by device of a replica

/// The devices of one worker.
LocalMeshActor::behavior_type
local_mesh_fake(Self<LocalMeshActor, FakeState>, MetricSums sums,
                std::vector<LocalMeshOrder<MoveOrder>>* moves = nullptr) {
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
    [=](move_atom, const Context&, const LocalMeshOrder<MoveOrder>& order) {
      if (moves != nullptr)
        moves->push_back(order);
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
  LocalMesh local_mesh(std::uint64_t sum, std::size_t member) {
    return {.actor = spawn(local_mesh_fake, MetricSums{sum}, &moves_),
            .members = {member}};
  }
  std::vector<LocalMesh> shards(const MetricSums& sums) {
    std::vector<LocalMesh> local_meshes;
    for (std::size_t i = 0; i < sums.size(); ++i)
      local_meshes.push_back(local_mesh(sums[i], i));
    return local_meshes;
  }
  /// A move from tensor halves to replicas.
  MoveSetup setup(const MetricSums& published, const MetricSums& arrived,
                  bool check) {
    return {.name = "actor@actor_gen",
            .source = ReplicaId{0},
            .target = ReplicaId{1},
            .sources = shards(published),
            .source_strategy = {.tp = 2},
            .target_strategy = {.dp = 2},
            .targets = shards(arrived),
            .check = check,
            .asks = asks_};
  }
  /// Returns the bytes moved, or why the move failed.
  std::string moved(const MoveSetup& setup) {
    const auto move = spawn(move_actor, setup);
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

  std::vector<LocalMeshOrder<MoveOrder>> moves_; ///< as they were asked for
};

TEST_F(MoveActorTest, EveryReplicaHasTheSumOfTheParts) {
  EXPECT_EQ(moved(setup({3, 4}, {7, 7}, /*check=*/true)), "16");
  EXPECT_EQ(moved(setup({3, 4}, {7, 8}, /*check=*/true)),
            "the weights that arrived differ from those that were sent");
  EXPECT_EQ(moved(setup({3, 4}, {7, 8}, /*check=*/false)), "16");
}

TEST_F(MoveActorTest, SendersTakePartButForThoseThatReceiveToo) {
  auto senders = setup({3, 4}, {7, 7}, /*check=*/true);
  senders.senders = {local_mesh(9, 2), local_mesh(9, 3)};
  senders.order_of = {0, 0, no_order, 0};
  EXPECT_EQ(moved(senders), "16") << "only targets count";
  ASSERT_EQ(moves_.size(), 3u);
  for (const auto& move : moves_) {
    EXPECT_EQ(move.orders.at(0).source, ReplicaId{0});
    EXPECT_EQ(move.orders.at(0).target, ReplicaId{1});
  }
}

} // namespace
} // namespace troupe::actors
