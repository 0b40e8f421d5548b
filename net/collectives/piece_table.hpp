// The lists of all members of a group, compared before their exchange: how
// many bytes go from each to each, cut in which way, and where they are. So
// members whose lists do not fit fail by name, where they would wait for each
// other or write into the wrong place, and all choose the same way.
#pragma once

#include "net/collectives/collectives.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace troupe::net {

class PieceTable {
public:
  /// Waits for all members of the group. `all_on_gpu`: this member's pieces.
  /// Throws FailureError, in all members, if a sender and its receiver differ;
  /// the group has then ended.
  PieceTable(Collectives& group, const Pieces& pieces, bool all_on_gpu,
             const char* name);

  std::size_t bytes(std::uint32_t from, std::uint32_t to) const {
    return row(from).sent[to].bytes;
  }
  /// Returns the bytes that a member sends.
  std::size_t bytes_sent(std::uint32_t from) const;
  /// Returns whether no member has a piece elsewhere.
  bool all_on_gpu() const;

private:
  /// One member's side of a pair; `cuts` differs if the sizes of pieces do.
  struct Side {
    std::uint64_t bytes = 0;
    std::uint64_t cuts = 0;
    bool operator==(const Side&) const = default;
  };
  struct Row {
    std::span<const Side> sent;     ///< by receiver
    std::span<const Side> received; ///< by sender
    bool all_on_gpu = false;
  };
  template <class Piece>
  static void add(std::span<const Piece> pieces, std::span<Side> sides);
  Row row(std::uint32_t rank) const;
  void check(Collectives& group, const char* name) const;

  std::uint32_t size_;
  std::vector<Side> all_; ///< by rank: sent, received, and where it is
};

} // namespace troupe::net
