#include "plans/move_plan.hpp"

#include "config/defaults.hpp"
#include "config/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <tuple>

namespace troupe::plans {

namespace {

/// A box of a source shard.
struct Owner {
  Rank device;
  const Box* box;
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

/// `box` without `hole`, which lies inside it: above, below, left, right.
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

class MovePlanner {
public:
  MovePlanner(const Layout& source, const Layout& target,
              const Cluster& cluster)
    : cluster_(cluster),
      element_bytes_(size_bytes(source.dtype)) {
    TROUPE_CHECK(source.dtype == target.dtype, "a move does not cast");
    for (const auto& shard : source.shards)
      for (const auto& box : shard.boxes) {
        if (owners_.size() <= box.parameter)
          owners_.resize(box.parameter + 1);
        owners_[box.parameter].push_back({shard.device, &box});
      }
  }

  /// Appends what `shard` receives, by target offset.
  void receive(const Shard& shard) {
    last_sender_.reset();
    const auto begin = static_cast<std::ptrdiff_t>(plan_.size());
    for (const auto& box : shard.boxes)
      cover(shard.device, box);
    std::sort(plan_.begin() + begin, plan_.end(), by_target);
    join_neighbours(static_cast<std::size_t>(begin));
  }

  std::vector<Transfer> take() {
    return std::move(plan_);
  }

private:
  static bool by_target(const Transfer& a, const Transfer& b) {
    return a.target_offset < b.target_offset;
  }

  /// Smaller is better; a sender in use stays until it is a whole chunk ahead
  /// of the least loaded one, so that runs stay long.
  std::tuple<int, std::uint64_t, Rank> rank_sender(Rank from, Rank to) const {
    int distance = 3;
    if (from == to)
      distance = 0;
    else if (cluster_.worker_of(from) == cluster_.worker_of(to))
      distance = 1;
    else if (cluster_.node_of(from) == cluster_.node_of(to))
      distance = 2;
    const auto found = sent_bytes_.find(from);
    const auto sent = found == sent_bytes_.end() ? 0 : found->second;
    const std::uint64_t bonus
      = from == last_sender_ ? defaults::move_chunk_bytes : 0;
    return {distance, sent - std::min(sent, bonus), from};
  }

  /// Takes the region of `target` from its owners, best sender first.
  void cover(Rank to, const Box& target) {
    TROUPE_CHECK(target.parameter < owners_.size(),
                 fmt::format("nobody owns parameter {}", target.parameter));
    auto owners = owners_[target.parameter];
    std::ranges::sort(owners, {}, [&](const Owner& owner) {
      return std::tuple{rank_sender(owner.device, to), owner.box->offset_bytes};
    });
    std::vector<Box> missing = {target};
    for (const auto& owner : owners) {
      std::vector<Box> rest;
      for (const auto& piece : missing) {
        const auto common = intersect(piece, *owner.box);
        if (!common) {
          rest.push_back(piece);
          continue;
        }
        send(owner, to, target, *common);
        append_without(piece, *common, rest);
      }
      missing = std::move(rest);
      if (missing.empty())
        return;
    }
    TROUPE_CHECK(missing.empty(), fmt::format("nobody owns all of parameter {}",
                                              target.parameter));
  }

  /// One run if the piece is as wide as both boxes, else one a row.
  void send(const Owner& owner, Rank to, const Box& target, const Box& piece) {
    const auto source_width = owner.box->col1 - owner.box->col0;
    const auto target_width = target.col1 - target.col0;
    const auto width = piece.col1 - piece.col0;
    const bool whole_rows = width == source_width && width == target_width;
    const auto rows_a_run = whole_rows ? piece.row1 - piece.row0 : 1;
    for (auto row = piece.row0; row < piece.row1; row += rows_a_run)
      plan_.push_back({.from = owner.device,
                       .to = to,
                       .source_offset = offset(*owner.box, row, piece.col0),
                       .target_offset = offset(target, row, piece.col0),
                       .bytes = static_cast<std::uint64_t>(rows_a_run * width)
                                * element_bytes_});
    if (owner.device != to)
      sent_bytes_[owner.device]
        += static_cast<std::uint64_t>(piece.num_elements()) * element_bytes_;
    last_sender_ = owner.device;
  }

  std::uint64_t offset(const Box& box, std::int64_t row,
                       std::int64_t col) const {
    const auto element
      = (row - box.row0) * (box.col1 - box.col0) + (col - box.col0);
    return box.offset_bytes
           + static_cast<std::uint64_t>(element) * element_bytes_;
  }

  /// Joins runs that follow each other at both ends, over padding too.
  void join_neighbours(std::size_t begin) {
    std::size_t last = begin;
    for (auto i = begin + 1; i < plan_.size(); ++i) {
      auto& previous = plan_[last];
      const auto& next = plan_[i];
      const auto gap
        = next.target_offset - (previous.target_offset + previous.bytes);
      const bool joins = previous.from == next.from
                         && gap < parameter_alignment_bytes
                         && next.source_offset
                              == previous.source_offset + previous.bytes + gap;
      if (joins)
        previous.bytes += gap + next.bytes;
      else
        plan_[++last] = next;
    }
    if (begin < plan_.size())
      plan_.resize(last + 1);
  }

  const Cluster& cluster_;
  std::uint64_t element_bytes_;
  std::vector<std::vector<Owner>> owners_; ///< by parameter
  std::map<Rank, std::uint64_t> sent_bytes_;
  std::optional<Rank> last_sender_;
  std::vector<Transfer> plan_;
};

std::vector<Transfer> part_of(std::span<const Transfer> plan,
                              Rank Transfer::*end, Rank device) {
  std::vector<Transfer> part;
  std::ranges::copy_if(plan, std::back_inserter(part),
                       [&](const Transfer& t) { return t.*end == device; });
  return part;
}

} // namespace

std::vector<Transfer> move_plan(const Layout& source, const Layout& target,
                                const Cluster& cluster) {
  std::vector<const Shard*> shards;
  for (const auto& shard : target.shards)
    shards.push_back(&shard);
  std::ranges::sort(shards, {}, &Shard::device);
  MovePlanner planner(source, target, cluster);
  for (const auto* shard : shards)
    planner.receive(*shard);
  return planner.take();
}

std::vector<Transfer> transfers_to(std::span<const Transfer> plan,
                                   Rank device) {
  return part_of(plan, &Transfer::to, device);
}

std::vector<Transfer> transfers_from(std::span<const Transfer> plan,
                                     Rank device) {
  return part_of(plan, &Transfer::from, device);
}

std::uint64_t moved_bytes(std::span<const Transfer> plan) {
  std::uint64_t bytes = 0;
  for (const auto& transfer : plan)
    bytes += transfer.from == transfer.to ? 0 : transfer.bytes;
  return bytes;
}

} // namespace troupe::plans
