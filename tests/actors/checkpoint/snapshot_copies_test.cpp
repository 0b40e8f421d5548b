// Snapshots that other nodes copy, in a scheduler that the test drives: which
// slot is written when, with workers that copy when the test says so.
#include "actors/checkpoint/checkpoint_actor.hpp"

#include "tests/support/actors/driven_actors.hpp"
#include "tests/support/temp_folder.hpp"
#include <gmock/gmock.h>

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe::actors {
namespace {

using ::testing::ElementsAre;

/// The copies that a worker was told to make.
struct CopyDesk {
  std::vector<SnapshotKey> asked;
  std::vector<Reply<SnapshotDone>> open;
  std::optional<Failure> failure; ///< instead of a copy
};

NodeActor::behavior_type copying_node(Self<NodeActor, FakeState> self,
                                      CopyDesk* desk) {
  return {
    [](setup_atom, const Context&, const SetupOrder&) { return SetupDone{}; },
    [](commit_atom, const Context&, const CommitOrder&) {
      return CommitDone{};
    },
    [](copy_atom, const Context&, const CopyRowsOrder&) { return CopyDone{}; },
    [](write_atom, const Context&, const WriteRowsOrder&) {
      return WriteDone{};
    },
    [](load_atom, const Context&, const LoadRowsOrder&) { return LoadDone{}; },
    [=](snapshot_atom, const Context& context, const SnapshotCopyOrder& order) {
      desk->asked.push_back(order.key);
      desk->open.emplace_back(self, context);
      return desk->open.back().promise();
    },
    [](ping_atom, const Context&, const PingOrder&) {
      return HeartbeatReply{};
    },
    [](abort_atom, const FailureMessage&) {},
    [](stop_atom) {},
    [](tick_atom) {},
    // ends the oldest copy in the actor's own handler
    [=](done_atom, std::uint64_t) {
      auto& reply = desk->open.front();
      if (desk->failure)
        reply.fail(*desk->failure);
      else
        reply.deliver({});
      desk->open.erase(desk->open.begin());
    },
  };
}

class SnapshotCopies : public DrivenActors {
protected:
  void start(std::optional<SnapshotRecord> loaded = {}) {
    if (loaded)
      *recorded_ = loaded->key.id;
    checkpoint_
      = spawn(checkpoint_actor,
              CheckpointSetup{.run_folder = folder_.path(),
                              .nodes = nodes_,
                              .snapshots = {.has_copies = true,
                                            .loaded = std::move(loaded),
                                            .incarnation = Incarnation{2},
                                            .recorded = recorded_},
                              .asks = asks_});
    run();
  }

  /// Makes a snapshot of so many steps; returns its record, and notes it as the
  /// session does. Empty: none was made.
  std::string snapshot(std::uint32_t steps) {
    SnapshotRecordText text;
    const auto client = spawn(client_actor, asks_, [&](ClientSelf self) {
      ask<SaveCopied>(
        self, checkpoint_, save_atom::value,
        Context{.step = StepId{steps - 1}, .incarnation = Incarnation{2}},
        SaveTask{
          .checkpoint = false, .snapshot = true, .next_step = StepId{steps}},
        {.name = "snapshot"},
        [&](const SaveCopied& done) { text = done.snapshot; },
        [](const Failure& failure) { FAIL() << to_string(failure); });
    });
    tell(client, start_atom::value);
    if (text.id != 0)
      *recorded_ = text.id;
    return text.text;
  }

  void end_copies() {
    for (const auto& node : nodes_)
      tell(node, done_atom::value, std::uint64_t{0});
  }
  std::vector<std::uint32_t> slots_asked() const {
    std::vector<std::uint32_t> slots;
    for (const auto& key : desks_[0].asked)
      slots.push_back(key.slot);
    return slots;
  }

  const support::TempFolder folder_;
  std::array<CopyDesk, 2> desks_;
  std::vector<NodeActor> nodes_{spawn(copying_node, &desks_[0]),
                                spawn(copying_node, &desks_[1])};
  std::shared_ptr<std::atomic<std::uint64_t>> recorded_
    = std::make_shared<std::atomic<std::uint64_t>>(0);
  CheckpointActor checkpoint_;
};

TEST_F(SnapshotCopies, TheOtherSlotStaysUntilAllNodesHaveCopied) {
  start();
  EXPECT_NE(snapshot(1), "") << "training waits for no copy";
  EXPECT_EQ(snapshot(2), "") << "no node has copied";
  tell(nodes_[0], done_atom::value, std::uint64_t{0});
  EXPECT_EQ(snapshot(3), "") << "one has not";
  tell(nodes_[1], done_atom::value, std::uint64_t{0});
  EXPECT_NE(snapshot(4), "");
  EXPECT_THAT(slots_asked(), ElementsAre(0, 1));
}

TEST_F(SnapshotCopies, ARecordNamesTheOneBeforeWhichIsCopied) {
  start();
  EXPECT_EQ(snapshot(1).find("before"), std::string::npos);
  end_copies();
  EXPECT_NE(snapshot(2).find("before"), std::string::npos);
}

TEST_F(SnapshotCopies, WhatWasLoadedIsCopiedAgainBeforeItsSlotIsTheOtherOne) {
  start(SnapshotRecord{.key = {.id = 9, .slot = 1},
                       .plan = "",
                       .state = {.next_step = StepId{5}}});
  EXPECT_THAT(slots_asked(), ElementsAre(1));
  EXPECT_EQ(snapshot(6), "");
  end_copies();
  EXPECT_NE(snapshot(7).find("\"slot\": 0"), std::string::npos);
}

TEST_F(SnapshotCopies, AMemoryThatIsFullEndsTheCopiesAndNotTheSnapshots) {
  start();
  for (auto& desk : desks_)
    desk.failure
      = Failure{.code = Errc::io, .who = "", .what = "", .cause = ""};
  snapshot(1);
  end_copies();
  EXPECT_NE(snapshot(2), "");
  EXPECT_NE(snapshot(3), "");
  EXPECT_THAT(slots_asked(), ElementsAre(0));
}

TEST_F(SnapshotCopies, ALostWorkerIsTheBusinessOfTheAttempt) {
  start();
  for (auto& desk : desks_)
    desk.failure
      = Failure{.code = Errc::peer_lost, .who = "", .what = "", .cause = ""};
  snapshot(1);
  end_copies();
  snapshot(2);
  EXPECT_THAT(slots_asked(), ElementsAre(0, 1)) << "it is tried again";
}

} // namespace
} // namespace troupe::actors
