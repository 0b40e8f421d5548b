// The pieces of memory that one member of a group sends to and receives from
// the others in an exchange (Collectives::exchange): parts of a weight move,
// for instance. Both ends of a pair list that pair's pieces in the same order
// and in the same sizes; pieces of different pairs need no order. What is
// received overlaps nothing else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace troupe::net {

struct SentPiece {
  std::uint32_t peer = 0; ///< rank of the receiver; may be the own one
  const std::byte* data = nullptr;
  std::size_t bytes = 0;
};

struct ReceivedPiece {
  std::uint32_t peer = 0; ///< rank of the sender; may be the own one
  std::byte* data = nullptr;
  std::size_t bytes = 0;
};

struct Pieces {
  std::span<const SentPiece> sent;
  std::span<const ReceivedPiece> received;
};

} // namespace troupe::net
