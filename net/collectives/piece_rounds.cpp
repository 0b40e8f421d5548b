#include "net/collectives/piece_rounds.hpp"

#include <algorithm>
#include <map>

namespace troupe::net {

namespace {

/// The last round of a pair, and what it has.
struct PairRound {
  std::size_t index = 0;
  std::size_t parts = 0;
  std::size_t bytes = 0;
};

template <class Piece>
void cut(std::span<const Piece> pieces, const RoundLimits& limits,
         std::vector<Piece> PieceRound::*side,
         std::vector<PieceRound>& rounds) {
  std::map<std::uint32_t, PairRound> pairs;
  for (Piece rest : pieces) {
    PairRound& last = pairs[rest.peer];
    while (rest.bytes > 0) {
      if (last.parts == limits.parts || last.bytes == limits.bytes)
        last = {.index = last.index + 1};
      if (rounds.size() <= last.index)
        rounds.resize(last.index + 1);
      const auto bytes = std::min(rest.bytes, limits.bytes - last.bytes);
      (rounds[last.index].*side).push_back({rest.peer, rest.data, bytes});
      ++last.parts;
      last.bytes += bytes;
      rest.data += bytes;
      rest.bytes -= bytes;
    }
  }
}

} // namespace

std::vector<PieceRound> cut_into_rounds(const Pieces& pieces,
                                        const RoundLimits& limits) {
  std::vector<PieceRound> rounds;
  cut(pieces.sent, limits, &PieceRound::sent, rounds);
  cut(pieces.received, limits, &PieceRound::received, rounds);
  return rounds;
}

} // namespace troupe::net
