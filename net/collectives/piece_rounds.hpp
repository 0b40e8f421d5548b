// Cuts the pieces of an exchange into rounds that each fit one group of NCCL's
// calls: so many calls and so many bytes per pair of members. Both members of a
// pair cut alike, since they list the same sizes, so that each part meets its
// other end in the same round. Pure arithmetic.
#pragma once

#include "net/collectives/pieces.hpp"

#include <vector>

namespace troupe::net {

/// Most of a round for each pair of members, in each direction.
struct RoundLimits {
  std::size_t parts = 1;
  std::size_t bytes = 1;
};

/// Parts of pieces, in order.
struct PieceRound {
  std::vector<SentPiece> sent;
  std::vector<ReceivedPiece> received;
};

std::vector<PieceRound> cut_into_rounds(const Pieces& pieces,
                                        const RoundLimits& limits);

} // namespace troupe::net
