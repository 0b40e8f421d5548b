#include "plans/weights/move_plan.hpp"

#include "config/base/defaults.hpp"
#include "config/base/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>
#include <tuple>
#include <utility>

namespace troupe::plans {

namespace {

/// Lead over the least loaded sender, relative to their shares, at which a
/// sender is replaced, and the bytes assigned to it at a time: together a
/// chunk.
constexpr std::uint64_t planner_run_bytes = defaults::move_chunk_bytes / 2;

/// A box of a source shard, and the offset of the shard's next box.
struct Owner {
  Rank device;
  const Box* box;
  std::uint64_t next_offset;
};

/// A transfer and the offset at which its sender's data continues: right after
/// it, or past the padding after its box. A gap that is padding at both ends
/// may be copied.
struct Piece {
  Transfer transfer;
  std::uint64_t source_next;
};

std::optional<Box> intersect(const Box& a, const Box& b) {
  const Box both{.parameter = a.parameter,
                 .row0 = std::max(a.row0, b.row0),
                 .row1 = std::min(a.row1, b.row1),
                 .col0 = std::max(a.col0, b.col0),
                 .col1 = std::min(a.col1, b.col1)};
  if (both.row0 >= both.row1 || both.col0 >= both.col1)
    return std::nullopt;
  return both;
}

/// Appends `box` without `hole`, which is inside it: above, below, left, right.
void append_without(const Box& box, const Box& hole, std::vector<Box>& rest) {
  const auto add = [&](std::int64_t row0, std::int64_t row1, std::int64_t col0,
                       std::int64_t col1) {
    if (row0 < row1 && col0 < col1)
      rest.push_back({box.parameter, row0, row1, col0, col1, 0});
  };
  add(box.row0, hole.row0, box.col0, box.col1);
  add(hole.row1, box.row1, box.col0, box.col1);
  add(hole.row0, hole.row1, box.col0, hole.col0);
  add(hole.row0, hole.row1, hole.col1, box.col1);
}

constexpr int other_host = 3;

/// Returns 0 for the same device, 1 the same worker, 2 the same host, else 3.
int distance_between(const Cluster& cluster, Rank from, Rank to) {
  if (from == to)
    return 0;
  if (cluster.worker_of(from) == cluster.worker_of(to))
    return 1;
  return cluster.node_of(from) == cluster.node_of(to) ? 2 : other_host;
}

class MovePlanner {
public:
  MovePlanner(const Layout& source, const Layout& target,
              const Cluster& cluster, const std::vector<bool>& rounded)
    : cluster_(cluster),
      rounded_(rounded),
      element_bytes_(size_bytes(source.dtype)) {
    TROUPE_CHECK(source.dtype == target.dtype, "a move does not cast");
    TROUPE_CHECK(rounded.empty() || source.dtype == DType::f32,
                 "only fp32 is rounded on its way");
    std::size_t num_ranks = 0;
    for (const auto& shard : source.shards) {
      num_ranks = std::max<std::size_t>(num_ranks, shard.device.value + 1);
      own_boxes(shard);
    }
    ahead_bytes_.resize(num_ranks, 0);
    distances_.resize(num_ranks, 0);
  }

  /// Appends the transfers that `shard` receives, by target offset.
  void receive(const Shard& shard) {
    last_sender_.reset();
    for (std::uint32_t from = 0; from < distances_.size(); ++from)
      distances_[from] = distance_between(cluster_, Rank{from}, shard.device);
    pieces_.clear();
    for (const auto& box : shard.boxes)
      cover(shard.device, box);
    std::ranges::sort(pieces_, {}, [](const Piece& piece) {
      return piece.transfer.target_offset;
    });
    append_joined();
  }

  std::vector<Transfer> take() {
    return std::move(plan_);
  }

private:
  void own_boxes(const Shard& shard) {
    for (std::size_t i = 0; i < shard.boxes.size(); ++i) {
      const auto& box = shard.boxes[i];
      if (owners_.size() <= box.parameter)
        owners_.resize(box.parameter + 1);
      const bool last = i + 1 == shard.boxes.size();
      owners_[box.parameter].push_back(
        {shard.device, &box,
         last ? shard.size_bytes : shard.boxes[i + 1].offset_bytes});
    }
  }

  /// Sort key of an owner, smallest first; the current sender has a bonus, so
  /// that runs are long.
  using OwnerRank = std::tuple<int, std::int64_t, Rank, std::uint64_t>;
  OwnerRank rank_owner(const Owner& owner) const {
    const auto from = owner.device;
    const std::int64_t bonus = from == last_sender_ ? planner_run_bytes : 0;
    return {distances_[from.value], ahead_bytes_[from.value] - bonus, from,
            owner.box->offset_bytes};
  }

  /// Covers `target` from its owners, some rows at a time, so that senders of
  /// one box share the load too.
  void cover(Rank to, const Box& target) {
    TROUPE_CHECK(target.parameter < owners_.size(),
                 fmt::format("no device owns parameter {}", target.parameter));
    std::vector<Owner> owners;
    for (const auto& owner : owners_[target.parameter])
      if (intersect(target, *owner.box))
        owners.push_back(owner);
    const auto row_bytes
      = static_cast<std::uint64_t>(target.col1 - target.col0) * element_bytes_;
    const auto rows_at_once = static_cast<std::int64_t>(
      std::max<std::uint64_t>(1, planner_run_bytes / row_bytes));
    for (auto row = target.row0; row < target.row1; row += rows_at_once) {
      auto rows = target;
      rows.row0 = row;
      rows.row1 = std::min(target.row1, row + rows_at_once);
      owners_of_rows_.clear();
      std::ranges::copy_if(owners, std::back_inserter(owners_of_rows_),
                           [&](const Owner& owner) {
                             return intersect(rows, *owner.box).has_value();
                           });
      cover_rows(to, target, rows, owners_of_rows_);
    }
  }

  /// Covers `rows`, best sender first: usually the first one has all of them,
  /// so a heap avoids sorting the others.
  void cover_rows(Rank to, const Box& target, const Box& rows,
                  const std::vector<Owner>& owners) {
    ranked_.clear();
    for (std::size_t i = 0; i < owners.size(); ++i)
      ranked_.emplace_back(rank_owner(owners[i]), i);
    std::ranges::make_heap(ranked_, std::greater{});
    std::vector<Box> missing = {rows};
    while (!ranked_.empty()) {
      const auto& owner = owners[ranked_.front().second];
      std::vector<Box> rest;
      for (const auto& piece : missing) {
        const auto common = intersect(piece, *owner.box);
        if (!common) {
          rest.push_back(piece);
          continue;
        }
        count_share(owners, owner, *common);
        send(owner, to, target, *common);
        append_without(piece, *common, rest);
      }
      missing = std::move(rest);
      if (missing.empty())
        return;
      std::ranges::pop_heap(ranked_, std::greater{});
      ranked_.pop_back();
    }
    TROUPE_CHECK(missing.empty(), fmt::format("no device owns all of "
                                              "parameter {}",
                                              target.parameter));
  }

  /// Charges all equally near owners of the piece with an equal part of it.
  /// Bytes that a device is the only one to own therefore do not reduce what it
  /// sends of shared ones: its share follows from the layouts, not from the
  /// order of receivers.
  void count_share(std::span<const Owner> owners, const Owner& sender,
                   const Box& piece) {
    const auto owes = [&](const Owner& owner) {
      return distances_[owner.device.value] == distances_[sender.device.value]
             && intersect(piece, *owner.box) == piece;
    };
    const auto bytes
      = piece.num_elements() * static_cast<std::int64_t>(element_bytes_);
    const auto part = bytes / std::ranges::count_if(owners, owes);
    for (const auto& owner : owners)
      if (owes(owner))
        ahead_bytes_[owner.device.value] -= part;
    ahead_bytes_[sender.device.value] += bytes;
  }

  /// Sends the piece as one run if it is as wide as both boxes, else as one run
  /// per row.
  void send(const Owner& owner, Rank to, const Box& target, const Box& piece) {
    const auto source_width = owner.box->col1 - owner.box->col0;
    const auto target_width = target.col1 - target.col0;
    const auto width = piece.col1 - piece.col0;
    const auto rows = piece.row1 - piece.row0;
    const bool one_run
      = rows == 1 || (width == source_width && width == target_width);
    const auto bytes_of = [&](std::int64_t elements) {
      return static_cast<std::uint64_t>(elements) * element_bytes_;
    };
    Transfer transfer{
      {.source_offset = offset(*owner.box, piece.row0, piece.col0),
       .target_offset = offset(target, piece.row0, piece.col0),
       .bytes = bytes_of(one_run ? rows * width : width)},
      owner.device,
      to,
      is_rounded(piece.parameter, owner.device)};
    if (!one_run) {
      transfer.runs = static_cast<std::uint64_t>(rows);
      transfer.source_stride = bytes_of(source_width);
      transfer.target_stride = bytes_of(target_width);
    }
    const bool ends_box = one_run && piece.row1 == owner.box->row1
                          && piece.col1 == owner.box->col1;
    pieces_.push_back({transfer, ends_box
                                   ? owner.next_offset
                                   : transfer.source_offset + transfer.bytes});
    last_sender_ = owner.device;
  }

  bool is_rounded(std::uint32_t parameter, Rank from) const {
    return !rounded_.empty() && rounded_.at(parameter)
           && distances_[from.value] == other_host;
  }

  std::uint64_t offset(const Box& box, std::int64_t row,
                       std::int64_t col) const {
    const auto element
      = (row - box.row0) * (box.col1 - box.col0) + (col - box.col0);
    return box.offset_bytes
           + static_cast<std::uint64_t>(element) * element_bytes_;
  }

  /// Joins `after` to `before` if it continues it at both ends, also over
  /// padding if both are single runs.
  static bool join(Piece& before, const Piece& after) {
    auto& previous = before.transfer;
    const auto& next = after.transfer;
    if (previous.from != next.from || previous.rounded != next.rounded)
      return false;
    if (previous.runs == 1 && next.runs == 1) {
      const auto gap
        = next.target_offset - (previous.target_offset + previous.bytes);
      if (next.source_offset != before.source_next
          || next.source_offset
               != previous.source_offset + previous.bytes + gap)
        return false;
      previous.bytes += gap + next.bytes;
      before.source_next = after.source_next;
      return true;
    }
    const auto skipped
      = [&](std::uint64_t stride) { return previous.runs * stride; };
    if (previous.bytes != next.bytes
        || previous.source_stride != next.source_stride
        || previous.target_stride != next.target_stride
        || next.source_offset
             != previous.source_offset + skipped(next.source_stride)
        || next.target_offset
             != previous.target_offset + skipped(next.target_stride))
      return false;
    previous.runs += next.runs;
    return true;
  }

  void append_joined() {
    std::size_t last = 0;
    for (std::size_t i = 1; i < pieces_.size(); ++i)
      if (!join(pieces_[last], pieces_[i]))
        pieces_[++last] = pieces_[i];
    if (!pieces_.empty())
      pieces_.resize(last + 1);
    for (const auto& piece : pieces_)
      plan_.push_back(piece.transfer);
  }

  const Cluster& cluster_;
  const std::vector<bool>& rounded_; ///< by parameter; empty: none is
  std::uint64_t element_bytes_;
  std::vector<std::vector<Owner>> owners_; ///< by parameter
  std::vector<std::int64_t> ahead_bytes_;  ///< relative to its share, by rank
  std::vector<int> distances_;             ///< to the receiver, by rank
  std::optional<Rank> last_sender_;
  std::vector<Owner> owners_of_rows_; ///< of the current rows: often few of all
  std::vector<std::pair<OwnerRank, std::size_t>> ranked_; ///< scratch
  std::vector<Piece> pieces_; ///< of the current receiver
  std::vector<Transfer> plan_;
};

} // namespace

std::vector<Transfer> move_plan(const Layout& source, const Layout& target,
                                const Cluster& cluster,
                                const std::vector<bool>& rounded) {
  std::vector<const Shard*> shards;
  for (const auto& shard : target.shards)
    shards.push_back(&shard);
  std::ranges::sort(shards, {}, &Shard::device);
  MovePlanner planner(source, target, cluster, rounded);
  for (const auto* shard : shards)
    planner.receive(*shard);
  return planner.take();
}

std::vector<Transfer> transfers_to(std::span<const Transfer> plan,
                                   Rank device) {
  std::vector<Transfer> part;
  std::ranges::copy_if(plan, std::back_inserter(part),
                       [&](const Transfer& t) { return t.to == device; });
  return part;
}

std::uint64_t moved_bytes(std::span<const Transfer> plan) {
  std::uint64_t bytes = 0;
  for (const auto& transfer : plan)
    bytes += transfer.from == transfer.to ? 0 : transfer.total_bytes();
  return bytes;
}

} // namespace troupe::plans
