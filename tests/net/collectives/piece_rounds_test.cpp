// Rounds of an exchange: what one member has of a pair meets what the other
// has, in the same round and in the same size.
#include "net/collectives/piece_rounds.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <random>

namespace troupe::net {
namespace {

using ::testing::ElementsAre;

constexpr std::uint32_t members = 4;

/// Sizes by sender, receiver and order.
using Sizes = std::vector<std::vector<std::vector<std::size_t>>>;

Sizes random_sizes(std::uint32_t seed) {
  std::mt19937 random(seed);
  Sizes sizes(members, std::vector<std::vector<std::size_t>>(members));
  for (auto& row : sizes)
    for (auto& pair : row)
      for (auto count = random() % 6; count > 0; --count)
        pair.push_back(random() % 40);
  return sizes;
}

/// The pieces of a rank; those of its pairs are mixed in an order of its own.
std::vector<PieceRound> rounds_of(const Sizes& sizes, std::uint32_t rank,
                                  const RoundLimits& limits) {
  std::vector<SentPiece> sent;
  std::vector<ReceivedPiece> received;
  for (std::size_t index = 0; index < 6; ++index)
    for (std::uint32_t i = 0; i < members; ++i) {
      const std::uint32_t peer = (rank * 3 + i) % members;
      if (index < sizes[rank][peer].size())
        sent.push_back({peer, nullptr, sizes[rank][peer][index]});
      if (index < sizes[peer][rank].size())
        received.push_back({peer, nullptr, sizes[peer][rank][index]});
    }
  return cut_into_rounds({sent, received}, limits);
}

template <class Piece>
std::vector<std::size_t> parts_with(const std::vector<Piece>& parts,
                                    std::uint32_t peer) {
  std::vector<std::size_t> sizes;
  for (const Piece& part : parts)
    if (part.peer == peer)
      sizes.push_back(part.bytes);
  return sizes;
}

/// Expects a pair's parts to be the same at both ends, and all of its bytes.
void expect_both_ends_fit(const std::vector<PieceRound>& sender,
                          const std::vector<PieceRound>& receiver,
                          std::uint32_t from, std::uint32_t to,
                          const std::vector<std::size_t>& sizes) {
  std::size_t left = 0;
  for (const std::size_t bytes : sizes)
    left += bytes;
  for (std::size_t i = 0; i < std::max(sender.size(), receiver.size()); ++i) {
    const auto sent = i < sender.size() ? parts_with(sender[i].sent, to)
                                        : std::vector<std::size_t>{};
    ASSERT_EQ(sent, i < receiver.size() ? parts_with(receiver[i].received, from)
                                        : std::vector<std::size_t>{});
    ASSERT_LE(sent.size(), 2U);
    for (const std::size_t bytes : sent)
      left -= bytes;
  }
  EXPECT_EQ(left, 0U);
}

TEST(PieceRounds, BothEndsOfAPairHaveTheSamePartsInEachRound) {
  constexpr RoundLimits limits{.parts = 2, .bytes = 32};
  for (std::uint32_t seed = 0; seed < 50; ++seed) {
    const Sizes sizes = random_sizes(seed);
    std::vector<std::vector<PieceRound>> rounds;
    for (std::uint32_t rank = 0; rank < members; ++rank)
      rounds.push_back(rounds_of(sizes, rank, limits));
    for (std::uint32_t pair = 0; pair < members * members; ++pair) {
      const std::uint32_t from = pair / members;
      const std::uint32_t to = pair % members;
      expect_both_ends_fit(rounds[from], rounds[to], from, to, sizes[from][to]);
    }
  }
}

TEST(PieceRounds, SplitAPieceThatIsLongerThanARound) {
  std::vector<std::byte> data(10);
  const SentPiece piece{1, data.data(), data.size()};
  const auto rounds
    = cut_into_rounds({{&piece, 1}, {}}, {.parts = 8, .bytes = 4});
  std::vector<std::ptrdiff_t> offsets;
  std::vector<std::size_t> sizes;
  for (const PieceRound& round : rounds)
    for (const SentPiece& part : round.sent) {
      offsets.push_back(part.data - data.data());
      sizes.push_back(part.bytes);
    }
  EXPECT_THAT(offsets, ElementsAre(0, 4, 8));
  EXPECT_THAT(sizes, ElementsAre(4, 4, 2));
}

} // namespace
} // namespace troupe::net
