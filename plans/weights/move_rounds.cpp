#include "plans/weights/move_rounds.hpp"

#include "config/base/error.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace troupe::plans {

namespace {

constexpr std::uint64_t number_bytes = sizeof(float);

/// The round that a pair has come to, and what it has packed in it.
struct PairProgress {
  std::size_t round = 0;
  std::uint64_t packed_bytes = 0;
};

/// Returns the staging memory of each pair: an equal part of that of the member
/// that is in most pairs. Where numbers are rounded it is of whole numbers.
std::uint64_t staging_of_pair(std::span<const Transfer> transfers,
                              std::uint64_t staging_bytes) {
  std::set<std::pair<Rank, Rank>> pairs;
  std::map<Rank, std::uint64_t> pairs_of;
  std::uint64_t most = 1;
  for (const Transfer& transfer : transfers)
    if (pairs.emplace(transfer.from, transfer.to).second)
      for (const Rank end : {transfer.from, transfer.to})
        most = std::max(most, ++pairs_of[end]);
  const auto share = std::max<std::uint64_t>(1, staging_bytes / most);
  if (std::ranges::none_of(transfers, &Transfer::rounded))
    return share;
  return std::max(number_bytes, share / number_bytes * number_bytes);
}

class RoundCutter {
public:
  RoundCutter(std::span<const Rank> members, Rank self,
              std::uint64_t pair_bytes)
    : members_(members),
      self_(self),
      pair_bytes_(pair_bytes) {}

  void cut(const Transfer& transfer) {
    if (transfer.runs == 1 && !transfer.rounded)
      return pass(transfer, transfer);
    transfer.in_runs_up_to(transfer.rounded ? 2 * pair_bytes_ : pair_bytes_,
                           [&](const ByteRuns& runs) { pass(transfer, runs); });
  }
  std::vector<MoveRound> take() {
    return std::move(rounds_);
  }

private:
  /// Cuts runs that each fit the staging memory of their pair. A round with
  /// room for one run more ends, so that runs are not sent one by one.
  void pass(const Transfer& transfer, ByteRuns rest) {
    PairProgress& pair = pairs_[{transfer.from, transfer.to}];
    const bool rounded = transfer.rounded;
    while (rest.runs > 0) {
      std::uint64_t runs = 1;
      if (rest.runs > 1 || rounded) {
        runs = (pair_bytes_ - pair.packed_bytes)
               / (rounded ? rest.bytes / 2 : rest.bytes);
        if (runs < std::min<std::uint64_t>(2, rest.runs)
            && pair.packed_bytes > 0) {
          pair = {.round = pair.round + 1};
          continue;
        }
      }
      const MovePiece piece{.runs = rest.take_first(std::min(rest.runs, runs)),
                            .rounded = rounded};
      if (piece.runs.runs > 1 || rounded)
        pair.packed_bytes += piece.wire_bytes();
      if (rounds_.size() <= pair.round)
        rounds_.resize(pair.round + 1);
      add(transfer, piece, rounds_[pair.round]);
    }
  }

  void add(const Transfer& transfer, const MovePiece& piece, MoveRound& round) {
    const ByteRuns& runs = piece.runs;
    const auto staged_run = piece.wire_bytes() / runs.runs;
    const auto is_in_place = [&](std::uint64_t stride) {
      return !piece.rounded && (runs.runs == 1 || stride == runs.bytes);
    };
    if (transfer.from == self_) {
      auto& sent = round.sent.emplace_back(piece);
      sent.peer = index_of(transfer.to);
      sent.in_place = is_in_place(runs.source_stride);
      sent.runs.target_offset = round.staged_bytes;
      sent.runs.target_stride = staged_run;
      round.staged_bytes += sent.in_place ? 0 : piece.wire_bytes();
    }
    if (transfer.to == self_) {
      auto& received = round.received.emplace_back(piece);
      received.peer = index_of(transfer.from);
      received.in_place = is_in_place(runs.target_stride);
      received.runs.source_offset = round.staged_bytes;
      received.runs.source_stride = staged_run;
      round.staged_bytes += received.in_place ? 0 : piece.wire_bytes();
    }
  }

  std::uint32_t index_of(Rank member) const {
    const auto found = std::ranges::lower_bound(members_, member);
    TROUPE_CHECK(found != members_.end() && *found == member,
                 "a transfer with a device that is not in the group");
    return static_cast<std::uint32_t>(found - members_.begin());
  }

  std::span<const Rank> members_;
  Rank self_;
  std::uint64_t pair_bytes_;
  std::map<std::pair<Rank, Rank>, PairProgress> pairs_;
  std::vector<MoveRound> rounds_;
};

} // namespace

MoveParts by_host(std::span<const Transfer> plan, const Cluster& cluster) {
  MoveParts parts;
  for (const Transfer& transfer : plan) {
    const bool same
      = cluster.node_of(transfer.from) == cluster.node_of(transfer.to);
    (same ? parts.within : parts.between).push_back(transfer);
  }
  return parts;
}

std::vector<Rank> ends_of(std::span<const Transfer> transfers) {
  std::set<Rank> ends;
  for (const Transfer& transfer : transfers)
    ends.insert({transfer.from, transfer.to});
  return {ends.begin(), ends.end()};
}

std::vector<MoveRound> move_rounds(std::span<const Transfer> transfers,
                                   std::span<const Rank> members, Rank self,
                                   std::uint64_t staging_bytes) {
  RoundCutter cutter(members, self, staging_of_pair(transfers, staging_bytes));
  for (const Transfer& transfer : transfers)
    cutter.cut(transfer);
  return cutter.take();
}

} // namespace troupe::plans
