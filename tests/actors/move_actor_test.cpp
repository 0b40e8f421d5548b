// What run.check_moves compares, in a scheduler that the test drives: shards
// are fakes that say what they lent and what arrived.
#include "actors/move_actor.hpp"
#include "actors/system.hpp"

#include <caf/scheduler/test_coordinator.hpp>

#include <gmock/gmock.h>

namespace troupe::actors {
namespace {

using Client = caf::typed_actor<caf::reacts_to<start_atom>, ask_failed>;
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

struct ClientState {
  std::string name = "client";
  Asks asks;
};
Client::behavior_type client_actor(Self<Client, ClientState> self,
                                   MoveActor move,
                                   std::shared_ptr<AskTable> table,
                                   std::string* end) {
  self->state.asks = Asks{table};
  return {[=](start_atom) {
            ask<MoveDone>(
              self, move, run_atom::value, Context{}, MoveTask{},
              {.name = "move", .worker = {}, .deadline = {}},
              [=](const MoveDone& done) { *end = std::to_string(done.bytes); },
              [=](const Failure& failure) { *end = failure.what; });
          },
          [=](fail_atom, std::uint64_t id, const Trouble& trouble) {
            self->state.asks.fail(id, to_failure(trouble));
          }};
}

class MoveChecks : public testing::Test {
protected:
  MoveChecks() {
    add_message_types(config_);
    config_.set("scheduler.policy", caf::atom("testing"));
    system_ = std::make_unique<caf::actor_system>(config_);
  }

  std::vector<Member> shards(const Sums& sums) {
    std::vector<Member> members;
    for (const auto sum : sums) {
      members.push_back({.shard = system_->spawn(shard_fake, sum)});
      ours_.push_back(members.back().shard.address());
    }
    return members;
  }

  /// Bytes that moved, or why the move failed: from tensor halves to copies.
  std::string moved(const Sums& lent, const Sums& arrived, bool check) {
    const auto table = std::make_shared<AskTable>();
    const auto move
      = system_->spawn(move_actor, MoveSetup{.name = "actor@actor_gen",
                                             .source = ReplicaId{0},
                                             .sources = shards(lent),
                                             .source_strategy = {.tp = 2},
                                             .target_strategy = {.dp = 2},
                                             .targets = shards(arrived),
                                             .check = check,
                                             .asks = table});
    std::string end;
    const auto client = system_->spawn(client_actor, move, table, &end);
    caf::anon_send(client, start_atom::value);
    auto& scheduler
      = dynamic_cast<caf::scheduler::test_coordinator&>(system_->scheduler());
    scheduler.run();
    ours_.push_back(move.address());
    ours_.push_back(client.address());
    for (const auto& actor : ours_)
      caf::anon_send_exit(actor, caf::exit_reason::kill);
    ours_.clear();
    scheduler.run();
    return end;
  }

  caf::actor_system_config config_;
  std::unique_ptr<caf::actor_system> system_;
  std::vector<caf::actor_addr> ours_;
};

TEST_F(MoveChecks, EveryCopyHasTheSumOfTheParts) {
  EXPECT_EQ(moved({3, 4}, {7, 7}, /*check=*/true), "16");
  EXPECT_EQ(moved({3, 4}, {7, 8}, /*check=*/true),
            "the weights that arrived differ from those that were sent");
  EXPECT_EQ(moved({3, 4}, {7, 8}, /*check=*/false), "16");
}

} // namespace
} // namespace troupe::actors
