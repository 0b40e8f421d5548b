// Orders of a call to the workers of its mesh: one fetch and one run each,
// however many devices they have. Local meshes are fakes that remember orders.
#include "actors/calls/call_actor.hpp"

#include "tests/support/actors/driven_actors.hpp"
#include <gmock/gmock.h>

#include <array>
#include <optional>

namespace troupe::actors {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

/// Orders that a worker got.
struct Sent {
  std::vector<LocalMeshOrder<FetchOrder>> fetches;
  std::vector<LocalMeshOrder<RunOrder>> runs;
};

/// Replies with the number of each device as its time.
LocalMeshActor::behavior_type
remembering_local_mesh(Self<LocalMeshActor, FakeState>, Sent* sent,
                       std::vector<std::size_t> devices) {
  return {
    [](load_atom, const Context&, const LocalMeshOrder<LoadOrder>&) {
      return LocalMeshDone<LoadDone>{};
    },
    [=](fetch_atom, const Context&, const LocalMeshOrder<FetchOrder>& order) {
      sent->fetches.push_back(order);
      return LocalMeshDone<FetchDone>{
        std::vector<FetchDone>(order.order_of.size(), {10})};
    },
    [=](run_atom, const Context&, const LocalMeshOrder<RunOrder>& order) {
      sent->runs.push_back(order);
      LocalMeshDone<RunDone> done;
      for (const auto device : devices)
        done.parts.push_back({.busy_ns = device});
      return done;
    },
    [](publish_weights_atom, const Context&,
       const LocalMeshOrder<PublishOrder>&) {
      return LocalMeshDone<PublishDone>{};
    },
    [](move_atom, const Context&, const LocalMeshOrder<MoveOrder>&) {
      return LocalMeshDone<MoveDone>{};
    },
    [](residency_atom, const Context&, const LocalMeshOrder<ResidencyOrder>&) {
      return LocalMeshDone<ResidencyDone>{};
    },
    [](snapshot_atom, const Context&, const LocalMeshOrder<SnapshotOrder>&) {
      return LocalMeshDone<SnapshotDone>{};
    },
    [](fail_atom, std::uint64_t, const FailureMessage&) {}};
}

class CallActorTest : public DrivenActors {
protected:
  /// Runs a call on d2t2, whose devices are on two workers, over four samples
  /// of the data set.
  CallDone called(const std::vector<std::vector<std::size_t>>& members,
                  const Strategy& strategy = {.dp = 2, .tp = 2},
                  plans::CallKind kind = plans::CallKind::inference) {
    CallSetup setup;
    setup.call = {
      .name = "ref_inf", .kind = kind, .role = "ref", .reads = {"prompt_ids"}};
    setup.strategy = strategy;
    setup.asks = asks_;
    for (std::uint32_t i = 0; i < members.size(); ++i)
      setup.local_meshes.push_back(
        {spawn(remembering_local_mesh, &sent_.at(i), members[i]), WorkerId{i},
         "devices", members[i]});
    CallTask task;
    task.count = 4;
    task.tokens = {5, 5, 5, 5};
    task.sources
      = {{.keys = {"prompt_ids"},
          .samples = {SampleId{0}, SampleId{1}, SampleId{2}, SampleId{3}},
          .rows = {6, 7, 8, 9}}};
    std::optional<CallDone> done;
    tell(spawn(client_actor, asks_,
               [&, call = spawn(call_actor, setup)](ClientSelf self) {
                 ask<CallDone>(
                   self, call, run_atom::value, Context{}, task,
                   {.name = "call"}, [&](const CallDone& all) { done = all; },
                   [](const Failure& failure) { FAIL() << failure.what; });
               }),
         start_atom::value);
    return done.value();
  }

  std::array<Sent, 2> sent_;
};

TEST_F(CallActorTest, EachWorkerGetsOneFetchAndOneRun) {
  const auto done = called({{0, 1}, {2, 3}});
  for (const auto& sent : sent_) {
    ASSERT_THAT(sent.fetches, SizeIs(1));
    ASSERT_THAT(sent.runs, SizeIs(1));
  }
  EXPECT_EQ(done.fetched_bytes, 40U);
  ASSERT_THAT(done.parts, SizeIs(4));
  for (std::size_t i = 0; i < done.parts.size(); ++i)
    EXPECT_EQ(done.parts[i].busy_ns, i);
}

TEST_F(CallActorTest, TensorPeersOfAWorkerShareOneOrder) {
  called({{0, 1}, {2, 3}});
  for (const auto& sent : sent_) {
    EXPECT_THAT(sent.runs.at(0).orders, SizeIs(1));
    EXPECT_THAT(sent.runs.at(0).order_of, ElementsAre(0, 0));
    EXPECT_THAT(sent.fetches.at(0).orders, SizeIs(1));
    EXPECT_THAT(sent.fetches.at(0).orders[0].sources.at(0).rows, SizeIs(2));
  }
}

TEST_F(CallActorTest, RanksThatShareTokensGetTheSameSamples) {
  called({{0, 2}, {1, 3}}, {.dp = 4, .cp = 2});
  for (const auto& sent : sent_) {
    EXPECT_THAT(sent.runs.at(0).order_of, ElementsAre(0, 1));
    EXPECT_THAT(sent.runs.at(0).orders, SizeIs(2));
    for (const auto& order : sent.runs.at(0).orders)
      EXPECT_THAT(order.batches.at(0), SizeIs(2));
  }
  EXPECT_EQ(sent_[0].runs.at(0).orders[0].batches,
            sent_[1].runs.at(0).orders[0].batches);
}

TEST_F(CallActorTest, RanksThatShareTokensGenerateFromSamplesOfTheirOwn) {
  called({{0, 2}, {1, 3}}, {.dp = 4, .cp = 2}, plans::CallKind::generate);
  for (const auto& sent : sent_)
    for (const auto& order : sent.runs.at(0).orders)
      EXPECT_THAT(order.batches.at(0), SizeIs(1));
  EXPECT_NE(sent_[0].runs.at(0).orders[0].batches,
            sent_[1].runs.at(0).orders[0].batches);
}

TEST_F(CallActorTest, RepliesAreInMeshOrderThoughWorkersHaveDevicesInTurn) {
  const auto done = called({{0, 2}, {1, 3}});
  EXPECT_THAT(sent_[0].runs.at(0).orders, SizeIs(2));
  EXPECT_THAT(sent_[0].runs.at(0).order_of, ElementsAre(0, 1));
  ASSERT_THAT(done.parts, SizeIs(4));
  for (std::size_t i = 0; i < done.parts.size(); ++i)
    EXPECT_EQ(done.parts[i].busy_ns, i);
}

} // namespace
} // namespace troupe::actors
