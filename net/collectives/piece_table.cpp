#include "net/collectives/piece_table.hpp"

#include "config/base/error.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::net {

PieceTable::PieceTable(Collectives& group, const Pieces& pieces,
                       bool all_on_gpu, const char* name)
  : size_(group.size()) {
  const std::size_t size = size_;
  std::vector<Side> mine(2 * size + 1);
  const std::span<Side> sides = mine;
  add(pieces.sent, sides.first(size));
  add(pieces.received, sides.subspan(size, size));
  mine.back().bytes = all_on_gpu ? 1 : 0;
  all_.resize(size * mine.size());
  group.all_gather(mine.data(), all_.data(),
                   mine.size() * sizeof(Side) / sizeof(std::int64_t),
                   DType::i64, name);
  check(group, name);
}

/// Empty pieces are left out: no byte of them is sent.
template <class Piece>
void PieceTable::add(std::span<const Piece> pieces, std::span<Side> sides) {
  constexpr std::uint64_t prime = 0x100000001b3; // of FNV-1a
  for (const Piece& piece : pieces) {
    TROUPE_CHECK(piece.peer < sides.size(),
                 fmt::format("a piece of rank {} in a group of {}", piece.peer,
                             sides.size()));
    if (piece.bytes == 0)
      continue;
    Side& side = sides[piece.peer];
    side.bytes += piece.bytes;
    side.cuts = (side.cuts ^ piece.bytes) * prime;
  }
}

PieceTable::Row PieceTable::row(std::uint32_t rank) const {
  const std::size_t size = size_;
  const auto sides
    = std::span(all_).subspan(rank * (2 * size + 1), 2 * size + 1);
  return {sides.first(size), sides.subspan(size, size),
          sides.back().bytes != 0};
}

std::size_t PieceTable::bytes_sent(std::uint32_t from) const {
  std::size_t sum = 0;
  for (const Side& side : row(from).sent)
    sum += side.bytes;
  return sum;
}

bool PieceTable::all_on_gpu() const {
  for (std::uint32_t rank = 0; rank < size_; ++rank)
    if (!row(rank).all_on_gpu)
      return false;
  return true;
}

void PieceTable::check(Collectives& group, const char* name) const {
  for (std::uint32_t from = 0; from < size_; ++from)
    for (std::uint32_t to = 0; to < size_; ++to) {
      const Side sent = row(from).sent[to];
      const Side received = row(to).received[from];
      if (sent == received)
        continue;
      const Failure failure{
        Errc::bug, fmt::format("rank {} in '{}'", from, name),
        fmt::format("sends {} bytes to rank {}, which expects {}{}", sent.bytes,
                    to, received.bytes,
                    sent.bytes == received.bytes ? " in other pieces" : ""),
        ""};
      group.abort(failure);
      throw FailureError{failure};
    }
}

} // namespace troupe::net
