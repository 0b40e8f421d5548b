// Rounds of moves between hosts, run on plain memory: the bytes of the
// transfers themselves, within the staging memory, the same pieces at both
// ends.
#include "plans/weights/move_rounds.hpp"
#include "plans/weights/rounded_moves.hpp"

#include "tests/support/plans/random_layout.hpp"
#include "tests/support/plans/rounded_words.hpp"
#include "tests/support/plans/support.hpp"
#include "tests/support/plans/toy_model.hpp"
#include "tests/support/plans/written_once.hpp"
#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

namespace troupe::plans {
namespace {

using Bytes = std::vector<std::byte>;
using Plane = std::vector<std::uint32_t>;

/// The members of an exchange with planes and rounds, in one process.
class RunRounds {
public:
  RunRounds(const std::vector<Transfer>& transfers, std::uint64_t staging_bytes)
    : members_(ends_of(transfers)) {
    for (const Rank self : members_) {
      rounds_.push_back(move_rounds(transfers, members_, self, staging_bytes));
      EXPECT_EQ(rounds_.back().size(), rounds_.front().size());
      for (const MoveRound& round : rounds_.back())
        EXPECT_LE(round.staged_bytes, staging_bytes);
    }
  }
  const std::vector<MoveRound>& rounds(std::size_t member) const {
    return rounds_.at(member);
  }

  /// Brings the pieces from the sources' planes to the targets'.
  void run(const std::map<Rank, Plane>& sources,
           std::map<Rank, Plane>& targets) const {
    for (std::size_t round = 0; round < rounds_.front().size(); ++round)
      for (std::uint32_t from = 0; from < members_.size(); ++from)
        for (std::uint32_t to = 0; to < members_.size(); ++to)
          pass(round, from, to, sources, targets);
  }

private:
  static std::vector<MovePiece> of_peer(std::vector<MovePiece> pieces,
                                        std::uint32_t peer) {
    std::erase_if(pieces,
                  [&](const auto& piece) { return piece.peer != peer; });
    return pieces;
  }
  /// Packs and unpacks whether or not that is needed.
  void pass(std::size_t round, std::uint32_t from, std::uint32_t to,
            const std::map<Rank, Plane>& sources,
            std::map<Rank, Plane>& targets) const {
    const auto sent = of_peer(rounds_[from][round].sent, to);
    const auto received = of_peer(rounds_[to][round].received, from);
    ASSERT_EQ(sent.size(), received.size());
    for (std::size_t i = 0; i < sent.size(); ++i) {
      ASSERT_EQ(sent[i].wire_bytes(), received[i].wire_bytes());
      ASSERT_EQ(sent[i].rounded, received[i].rounded);
      const bool rounds = sent[i].rounded;
      Bytes wire(sent[i].wire_bytes());
      auto packed = sent[i].runs;
      packed.target_offset = 0;
      (rounds ? round_runs : copy_runs)(
        packed, sources.at(members_[from]).data(), wire.data());
      auto landed = received[i].runs;
      landed.source_offset = 0;
      (rounds ? widen_runs : copy_runs)(landed, wire.data(),
                                        targets.at(members_[to]).data());
    }
  }

  std::vector<Rank> members_;
  std::vector<std::vector<MoveRound>> rounds_; ///< by member
};

std::map<Rank, Plane> planes_of(const Layout& layout, bool is_filled) {
  std::map<Rank, Plane> planes;
  for (const auto& shard : layout.shards)
    planes[shard.device]
      = is_filled ? fill(shard) : Plane(shard.size_bytes / 4, 0);
  return planes;
}

TEST(MoveRoundsProperty, BringTheBytesOfTheTransfers_I1_I3) {
  std::mt19937_64 random(17);
  for (int i = 0; i < 100; ++i) {
    const auto model = troupe::testing::toy_model(3, 7, i % 2 == 0);
    const RandomMove move(model, random);
    const auto parts = by_host(
      move_plan(move.source, move.target, move.cluster), move.cluster);
    const auto sources = planes_of(move.source, true);
    auto found = planes_of(move.target, false);
    for (const Transfer& transfer : parts.within)
      copy_runs(transfer, sources.at(transfer.from).data(),
                found.at(transfer.to).data());
    if (!parts.between.empty())
      RunRounds(parts.between, 40 + random() % 5000).run(sources, found);
    EXPECT_EQ(found, planes_of(move.target, true)) << "move " << i;
  }
}

TEST(MoveRoundsProperty, RoundedOnTheirWayBringWhatKernelsRead_I1_I3) {
  std::mt19937_64 random(18);
  for (int i = 0; i < 100; ++i) {
    const auto model = troupe::testing::toy_model(3, 7, i % 2 == 0);
    const auto rounded = read_rounded(model);
    const RandomMove move(model, random);
    const auto parts = by_host(
      move_plan(move.source, move.target, move.cluster, rounded), move.cluster);
    std::map<Rank, Plane> sources;
    for (const auto& shard : move.source.shards)
      sources[shard.device] = fill_numbers(shard);
    auto found = planes_of(move.target, false);
    for (const Transfer& transfer : parts.within) {
      EXPECT_FALSE(transfer.rounded);
      copy_runs(transfer, sources.at(transfer.from).data(),
                found.at(transfer.to).data());
    }
    if (!parts.between.empty())
      RunRounds(parts.between, 400 + random() % 5000).run(sources, found);
    for (const auto& shard : move.target.shards)
      EXPECT_EQ(as_read(shard, found.at(shard.device), rounded),
                as_read(shard, fill_numbers(shard), rounded))
        << "move " << i;
  }
}

TEST(MoveRounds, StageRoundedNumbersInBf16AtBothEnds) {
  const std::vector<Transfer> plan{
    {{.source_offset = 64, .target_offset = 128, .bytes = 80},
     Rank{0},
     Rank{1},
     /*rounded=*/true}};
  const RunRounds run(plan, 18);
  for (const std::size_t member : {0u, 1u}) {
    std::uint64_t wire_bytes = 0;
    ASSERT_THAT(run.rounds(member), SizeIs(3)) << "of 8, 8 and 4 numbers";
    for (const MoveRound& round : run.rounds(member)) {
      const auto& pieces = member == 0 ? round.sent : round.received;
      ASSERT_THAT(pieces, SizeIs(1));
      EXPECT_FALSE(pieces[0].in_place);
      EXPECT_EQ(pieces[0].wire_bytes(), round.staged_bytes);
      wire_bytes += pieces[0].wire_bytes();
    }
    EXPECT_EQ(wire_bytes, 40u);
  }
}

TEST(MoveRounds, AreOfTheTransfersThatLeaveAHost) {
  const Cluster cluster{.nodes = 2, .devices_per_node = 2};
  const std::vector<Transfer> plan{{{.bytes = 4}, Rank{0}, Rank{1}},
                                   {{.bytes = 8}, Rank{1}, Rank{2}},
                                   {{.bytes = 16}, Rank{3}, Rank{3}}};
  const auto parts = by_host(plan, cluster);
  EXPECT_THAT(parts.within, ElementsAre(plan[0], plan[2]));
  EXPECT_THAT(parts.between, ElementsAre(plan[1]));
  EXPECT_THAT(ends_of(parts.between), ElementsAre(Rank{1}, Rank{2}));
}

TEST(MoveRounds, SendContiguousBytesInOnePieceWithoutStaging) {
  const std::vector<Transfer> plan{
    {{.source_offset = 64, .target_offset = 128, .bytes = 1 << 20},
     Rank{0},
     Rank{1}}};
  const RunRounds run(plan, 100);
  ASSERT_THAT(run.rounds(0), SizeIs(1));
  const auto& round = run.rounds(0)[0];
  EXPECT_EQ(round.staged_bytes, 0u);
  EXPECT_THAT(round.received, IsEmpty());
  ASSERT_THAT(round.sent, SizeIs(1));
  EXPECT_EQ(round.sent[0].peer, 1u);
  EXPECT_TRUE(round.sent[0].in_place);
  EXPECT_EQ(round.sent[0].runs.source_offset, 64u);
}

TEST(MoveRounds, PackRunsThatAreApartAtOneEndOnly) {
  const std::vector<Transfer> plan{
    {{.bytes = 8, .runs = 10, .source_stride = 32, .target_stride = 8},
     Rank{0},
     Rank{1}}};
  const RunRounds run(plan, 40);
  EXPECT_THAT(run.rounds(0), SizeIs(2)) << "of five runs each";
  for (const MoveRound& round : run.rounds(0)) {
    EXPECT_EQ(round.staged_bytes, 40u);
    EXPECT_THAT(round.sent, SizeIs(1));
  }
  for (const MoveRound& round : run.rounds(1))
    EXPECT_EQ(round.staged_bytes, 0u) << "it lands in its place";
}

} // namespace
} // namespace troupe::plans
