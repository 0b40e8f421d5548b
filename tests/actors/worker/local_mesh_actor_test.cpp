// The devices of a replica on one worker, as fakes: who gets an order, and what
// comes back as one reply.
#include "actors/worker/local_mesh_actor.hpp"

#include "tests/support/actors/driven_actors.hpp"
#include <gmock/gmock.h>

#include <array>
#include <optional>

namespace troupe::actors {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct ShardFakeState {
  std::string name = "shard";
  std::vector<caf::typed_response_promise<MoveDone>> waiting;
};
using ShardFakeSelf = Self<ShardActor, ShardFakeState>;

/// Counts runs in `tasks`, fails those of task 7, and never ends a move.
ShardActor::behavior_type shard_fake(ShardFakeSelf self, std::uint64_t device,
                                     std::vector<std::uint32_t>* tasks) {
  return {
    [](load_atom, const Context&, const LoadOrder&) { return LoadDone{}; },
    [](fetch_atom, const Context&, const FetchOrder&) { return FetchDone{}; },
    [=](run_atom, const Context&,
        const RunOrder& order) -> caf::result<RunDone> {
      tasks->push_back(order.task);
      if (order.task == 7)
        return to_error({Errc::out_of_memory, "shard", "it is full", ""});
      return RunDone{.busy_ns = device};
    },
    [](publish_weights_atom, const Context&, const PublishOrder&) {
      return PublishDone{};
    },
    [=](move_atom, const Context&, const MoveOrder&) -> caf::result<MoveDone> {
      self->state.waiting.push_back(self->make_response_promise<MoveDone>());
      return self->state.waiting.back();
    },
    [](residency_atom, const Context&, const ResidencyOrder&) {
      return ResidencyDone{};
    },
    [](copy_atom, const Context&, const CopyOrder&) { return CopyDone{}; },
    [](write_atom, const Context&, const WriteOrder&) { return WriteDone{}; },
    [](snapshot_atom, const Context&, const SnapshotOrder&) {
      return SnapshotDone{};
    },
    [](done_atom, std::uint64_t) {}};
}

class LocalMeshActorTest : public DrivenActors {
protected:
  LocalMeshActorTest() {
    LocalMeshSetup setup{.replica = "actor",
                         .worker = WorkerId{1},
                         .ranks = {Rank{4}, Rank{5}, Rank{6}},
                         .shards = {},
                         .asks = own_asks_};
    for (std::size_t i = 0; i < tasks_.size(); ++i)
      setup.shards.push_back(
        spawn(shard_fake, setup.ranks[i].value, &tasks_[i]));
    local_mesh_ = spawn(local_mesh_actor, std::move(setup));
  }

  template <class Done, class Atom, class Order>
  void send(Atom atom, LocalMeshOrder<Order> order) {
    tell(spawn(client_actor, asks_,
               [=, this](ClientSelf self) {
                 ask<LocalMeshDone<Done>>(
                   self, local_mesh_, atom, Context{}, order, {.name = "order"},
                   [this](const LocalMeshDone<Done>& done) {
                     if constexpr (std::is_same_v<Done, RunDone>)
                       for (const auto& part : done.parts)
                         busy_.push_back(part.busy_ns);
                   },
                   [this](const Failure& failure) { failed_ = failure; });
               }),
         start_atom::value);
  }

  std::shared_ptr<AskTable> own_asks_ = std::make_shared<AskTable>();
  std::array<std::vector<std::uint32_t>, 3> tasks_;
  LocalMeshActor local_mesh_;
  std::vector<std::uint64_t> busy_; ///< of the joined reply
  std::optional<Failure> failed_;
};

RunOrder order_of(std::uint32_t task) {
  RunOrder order;
  order.task = task;
  return order;
}

TEST_F(LocalMeshActorTest,
       HandsEachDeviceItsOrderAndJoinsTheRepliesInMeshOrder) {
  send<RunDone>(run_atom::value, LocalMeshOrder<RunOrder>{
                                   {order_of(1), order_of(2)}, {1, 0, 1}});
  EXPECT_THAT(tasks_,
              ElementsAre(ElementsAre(2), ElementsAre(1), ElementsAre(2)));
  EXPECT_THAT(busy_, ElementsAre(4, 5, 6));
}

TEST_F(LocalMeshActorTest, ADeviceWithoutAnOrderIsNotAsked) {
  send<RunDone>(run_atom::value, LocalMeshOrder<RunOrder>{
                                   {order_of(3)}, {no_order, 0, no_order}});
  EXPECT_THAT(tasks_, ElementsAre(IsEmpty(), ElementsAre(3), IsEmpty()));
  EXPECT_THAT(busy_, ElementsAre(0, 5, 0));
}

TEST_F(LocalMeshActorTest, AFailureOfOneDeviceIsTheReplyWithItsCause) {
  send<RunDone>(run_atom::value, LocalMeshOrder<RunOrder>{
                                   {order_of(1), order_of(7)}, {0, 1, 0}});
  ASSERT_TRUE(failed_);
  EXPECT_EQ(failed_->code, Errc::out_of_memory);
  EXPECT_EQ(failed_->who, "shard");
  EXPECT_EQ(failed_->what, "it is full");
  EXPECT_THAT(busy_, IsEmpty());
}

TEST_F(LocalMeshActorTest, WhatIsOpenFailsWhenTheRunDoes_I7) {
  send<MoveDone>(move_atom::value, LocalMeshOrder<MoveOrder>{{{}}, {0, 0, 0}});
  EXPECT_FALSE(failed_);
  EXPECT_EQ(own_asks_->waits(AskTable::Clock::now()).size(), 3U);
  own_asks_->fail_all({Errc::aborted, "run", "over", ""});
  run();
  ASSERT_TRUE(failed_);
  EXPECT_EQ(failed_->what, "over");
}

} // namespace
} // namespace troupe::actors
