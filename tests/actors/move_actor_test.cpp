// What run.check_moves compares, in a scheduler that the test drives: shards
// are fakes that say what they lent and what arrived.
#include "actors/move_actor.hpp"

#include "tests/support/actors/driven_actors.hpp"
#include <gmock/gmock.h>

namespace troupe::actors {
namespace {

using Sums = std::vector<std::uint64_t>; ///< by device of a replica

struct ShardFakeState {
  std::string name = "shard";
};
ShardActor::behavior_type shard_fake(Self<ShardActor, ShardFakeState>,
                                     std::uint64_t sum) {
  return {
    [](load_atom, const Context&, const LoadOrder&) { return LoadDone{}; },
    [](fetch_atom, const Context&, const FetchOrder&) { return FetchDone{}; },
    [](run_atom, const Context&, const RunOrder&) { return RunDone{}; },
    [=](lend_atom, const Context&, const LendOrder&) { return LendDone{sum}; },
    [=](move_atom, const Context&, const MoveOrder&) {
      return MoveDone{.bytes = 8, .checksum = sum};
    },
    [](life_atom, const Context&, const LifeOrder&) { return LifeDone{}; },
    [](copy_atom, const Context&, const CopyOrder&) { return CopyDone{}; },
    [](write_atom, const Context&, const WriteOrder&) { return WriteDone{}; },
    [](done_atom, std::uint64_t) {}};
}

class MoveChecks : public DrivenActors {
protected:
  std::vector<Member> shards(const Sums& sums) {
    std::vector<Member> members;
    for (const auto sum : sums)
      members.push_back({.shard = spawn(shard_fake, sum)});
    return members;
  }

  /// Bytes that moved, or why the move failed: from tensor halves to copies.
  std::string moved(const Sums& lent, const Sums& arrived, bool check) {
    const auto move = spawn(move_actor, MoveSetup{.name = "actor@actor_gen",
                                                  .source = ReplicaId{0},
                                                  .sources = shards(lent),
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

TEST_F(MoveChecks, EveryCopyHasTheSumOfTheParts) {
  EXPECT_EQ(moved({3, 4}, {7, 7}, /*check=*/true), "16");
  EXPECT_EQ(moved({3, 4}, {7, 8}, /*check=*/true),
            "the weights that arrived differ from those that were sent");
  EXPECT_EQ(moved({3, 4}, {7, 8}, /*check=*/false), "16");
}

} // namespace
} // namespace troupe::actors
