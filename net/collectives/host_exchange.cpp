#include "net/collectives/host_exchange.hpp"

#include "net/base/defaults.hpp"
#include "net/collectives/piece_table.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

namespace troupe::net {

namespace {

/// Pieces as one run of bytes, read or written from the first to the last.
template <class Piece>
class PieceStream {
public:
  void add(const Piece& piece) {
    if (piece.bytes > 0)
      pieces_.push_back(piece);
  }
  /// Calls each(data, bytes) for the parts of the next `bytes` bytes.
  template <class Each>
  void pass(std::size_t bytes, const Each& each) {
    while (bytes > 0) {
      Piece& next = pieces_[done_];
      const auto part = std::min(bytes, next.bytes);
      each(next.data, part);
      next.data += part;
      next.bytes -= part;
      bytes -= part;
      done_ += next.bytes == 0 ? 1 : 0;
    }
  }

private:
  std::vector<Piece> pieces_;
  std::size_t done_ = 0; ///< pieces
};

class GatheredExchange {
public:
  GatheredExchange(Collectives& group, const Pieces& pieces,
                   const BlockMemory* memory, const char* name)
    : group_(group),
      memory_(memory),
      table_(group, pieces, false, name),
      received_(group.size()) {
    std::vector<SentPiece> sent(pieces.sent.begin(), pieces.sent.end());
    std::ranges::stable_sort(sent, {}, &SentPiece::peer);
    for (const SentPiece& piece : sent)
      sent_.add(piece);
    for (const ReceivedPiece& piece : pieces.received)
      received_[piece.peer].add(piece);
  }

  void run(const char* name) {
    std::size_t longest = 0;
    for (std::uint32_t rank = 0; rank < group_.size(); ++rank)
      longest = std::max(longest, table_.bytes_sent(rank));
    const auto chunk = std::min(longest, kExchangeStagingBytes / group_.size());
    std::vector<std::byte> staging(chunk * group_.size());
    for (std::size_t first = 0; first < longest; first += chunk) {
      const Chunk part{first, std::min(first + chunk, longest)};
      fill(staging.data() + group_.rank() * part.size(), part);
      group_.all_gather(staging.data() + group_.rank() * part.size(),
                        staging.data(), part.size(), DType::u8, name);
      for (std::uint32_t from = 0; from < group_.size(); ++from)
        keep(from, staging.data() + from * part.size(), part);
    }
  }

private:
  /// A range of the members' streams.
  struct Chunk {
    std::size_t begin = 0;
    std::size_t end = 0;
    std::size_t size() const {
      return end - begin;
    }
    Chunk overlap(const Chunk& other) const {
      const auto first = std::max(begin, other.begin);
      return {first, std::max(first, std::min(end, other.end))};
    }
  };

  /// Copies this member's part of a chunk to the staging memory.
  void fill(std::byte* to, const Chunk& part) {
    const Chunk own = part.overlap({0, table_.bytes_sent(group_.rank())});
    sent_.pass(own.size(), [&](const std::byte* from, std::size_t bytes) {
      if (is_far(from))
        memory_->read(from, to, bytes);
      else
        std::memcpy(to, from, bytes);
      to += bytes;
    });
  }

  /// Copies from a member's part of a chunk what this member receives.
  void keep(std::uint32_t from, const std::byte* staged, const Chunk& part) {
    Chunk mine;
    for (std::uint32_t to = 0; to < group_.rank(); ++to)
      mine.begin += table_.bytes(from, to);
    mine.end = mine.begin + table_.bytes(from, group_.rank());
    const Chunk here = part.overlap(mine);
    if (here.size() == 0)
      return;
    staged += here.begin - part.begin;
    received_[from].pass(here.size(), [&](std::byte* to, std::size_t bytes) {
      if (is_far(to))
        memory_->write(staged, to, bytes);
      else
        std::memcpy(to, staged, bytes);
      staged += bytes;
    });
  }

  bool is_far(const void* data) const {
    return memory_ != nullptr && memory_->owns(data);
  }

  Collectives& group_;
  const BlockMemory* memory_;
  PieceTable table_;
  PieceStream<SentPiece> sent_;
  std::vector<PieceStream<ReceivedPiece>> received_; ///< by sender
};

} // namespace

void exchange_over_gathers(Collectives& group, const Pieces& pieces,
                           const BlockMemory* memory, const char* name) {
  GatheredExchange(group, pieces, memory, name).run(name);
}

} // namespace troupe::net
