// No sender of a move exceeds its fair share: equal parts of what it and
// equally near senders own. Counted here cell by cell: between the places where
// boxes begin and end, all of a cell has the same owners.
#include "config/base/defaults.hpp"
#include "plans/weights/move_plan.hpp"

#include <gtest/gtest.h>

#include "tests/support/plans/random_layout.hpp"
#include "tests/support/plans/toy_model.hpp"

#include <map>
#include <set>
#include <tuple>

namespace troupe::plans {
namespace {

/// A model of matrices of many chunks each.
std::vector<ParameterShape> wide_model(std::int32_t layers, bool tied) {
  auto model = troupe::testing::toy_model(layers, 1536, tied);
  for (auto& parameter : model)
    if (parameter.cols > 1)
      parameter.rows *= 4;
  return model;
}

class FairShares {
public:
  FairShares(const Layout& source, const Layout& target, const Cluster& cluster)
    : source_(source),
      cluster_(cluster) {
    for (const auto& shard : target.shards)
      for (const auto& box : shard.boxes)
        add_box(shard.device, box);
  }
  double of(Rank sender) const {
    const auto found = shares_.find(sender);
    return found == shares_.end() ? 0 : found->second;
  }

private:
  using Cuts = std::set<std::int64_t>;

  void add_box(Rank to, const Box& box) {
    Cuts rows{box.row0, box.row1}, cols{box.col0, box.col1};
    owners_.clear();
    for (const auto& shard : source_.shards)
      for (const auto& own : shard.boxes)
        if (own.parameter == box.parameter)
          owners_.emplace_back(shard.device, own);
    for (const auto& [rank, own] : owners_) {
      rows.insert({std::clamp(own.row0, box.row0, box.row1),
                   std::clamp(own.row1, box.row0, box.row1)});
      cols.insert({std::clamp(own.col0, box.col0, box.col1),
                   std::clamp(own.col1, box.col0, box.col1)});
    }
    for (auto row = rows.begin(); std::next(row) != rows.end(); ++row)
      for (auto col = cols.begin(); std::next(col) != cols.end(); ++col)
        add_cell(to, *row, *col,
                 4.0 * double(*std::next(row) - *row)
                   * double(*std::next(col) - *col));
  }

  void add_cell(Rank to, std::int64_t row, std::int64_t col, double bytes) {
    std::map<std::tuple<bool, bool, bool>, std::vector<Rank>> by_distance;
    for (const auto& [rank, own] : owners_)
      if (own.row0 <= row && row < own.row1 && own.col0 <= col
          && col < own.col1)
        by_distance[{cluster_.node_of(rank) != cluster_.node_of(to),
                     cluster_.worker_of(rank) != cluster_.worker_of(to),
                     rank != to}]
          .push_back(rank);
    const auto& nearest = by_distance.begin()->second;
    for (const auto rank : nearest)
      if (rank != to)
        shares_[rank] += bytes / double(nearest.size());
  }

  const Layout& source_;
  const Cluster& cluster_;
  std::vector<std::pair<Rank, Box>> owners_; ///< of the current parameter
  std::map<Rank, double> shares_;            ///< bytes
};

/// Returns the number of senders that send more than a chunk.
int expect_fair(const Layout& source, const Layout& target,
                const Cluster& cluster) {
  const FairShares fair(source, target, cluster);
  std::map<Rank, std::uint64_t> sent;
  for (const auto& t : move_plan(source, target, cluster))
    if (t.from != t.to)
      sent[t.from] += t.total_bytes();
  int long_senders = 0;
  for (const auto& [sender, bytes] : sent) {
    EXPECT_LE(double(bytes),
              fair.of(sender) + double(defaults::move_chunk_bytes))
      << "device " << sender.value;
    long_senders += bytes > defaults::move_chunk_bytes;
  }
  return long_senders;
}

TEST(MoveSharesProperty, NoSenderExceedsItsFairShareByMoreThanAChunk) {
  int long_senders = 0;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const auto model
      = wide_model(std::int32_t(1 + random() % 4), random() % 2 != 0);
    const RandomMove move(model, random);
    long_senders += expect_fair(move.source, move.target, move.cluster);
  }
  EXPECT_GT(long_senders, 10'000);
}

TEST(MoveSharesProperty, SendersOfThe36PairsOfReaLsTestHaveFairShares) {
  const auto model = wide_model(8, false);
  const Cluster cluster{.nodes = 2, .devices_per_node = 8};
  for (const auto& from : real_degrees)
    for (const auto& to : real_degrees)
      for (const std::uint32_t first : {0, 4, 8})
        expect_fair(real_layout(model, from, 0), real_layout(model, to, first),
                    cluster);
}

} // namespace
} // namespace troupe::plans
