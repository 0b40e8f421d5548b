#include "models/transformer/expert_exchange.hpp"

#include "net/collectives/all_to_all.hpp"

#include <numeric>

namespace troupe::models {

namespace {

/// Returns the bytes of each rank's rows of `width` floats.
std::vector<std::size_t> sizes_of(const std::vector<std::int64_t>& rows_D,
                                  std::int64_t width) {
  std::vector<std::size_t> sizes;
  for (const std::int64_t rows : rows_D)
    sizes.push_back(static_cast<std::size_t>(rows * width) * sizeof(float));
  return sizes;
}

std::vector<std::size_t> sizes_of(const std::vector<ExpertRows::Run>& runs_D,
                                  std::int64_t width) {
  std::vector<std::int64_t> rows_D;
  for (const ExpertRows::Run& run : runs_D)
    rows_D.push_back(run.rows);
  return sizes_of(rows_D, width);
}

/// Sorts rows by expert, then by rank, given how many each rank [D] sends to
/// each expert [L].
Routing routing_of(const std::vector<std::int64_t>& counts_DL,
                   std::size_t experts) {
  const std::size_t ranks = counts_DL.size() / experts;
  std::vector<std::int64_t> next_DL(counts_DL.size());
  std::exclusive_scan(counts_DL.begin(), counts_DL.end(), next_DL.begin(),
                      std::int64_t{0});
  Routing here;
  here.begin_E.push_back(0);
  for (std::size_t e = 0; e < experts; ++e) {
    for (std::size_t rank = 0; rank < ranks; ++rank)
      for (std::int64_t i = 0; i < counts_DL[rank * experts + e]; ++i)
        here.token_S.push_back(
          static_cast<std::int32_t>(next_DL[rank * experts + e] + i));
    here.begin_E.push_back(static_cast<std::int64_t>(here.token_S.size()));
  }
  here.weight_S.assign(here.token_S.size(), 1.0F);
  return here;
}

} // namespace

std::int64_t ExpertRows::num_out() const {
  std::int64_t sum = 0;
  for (const Run& run : out_D)
    sum += run.rows;
  return sum;
}

std::int64_t ExpertRows::num_in() const {
  return std::accumulate(in_D.begin(), in_D.end(), std::int64_t{0});
}

ExpertRows plan_rows(const ExpertPeers& peers, const Routing& routing) {
  const std::size_t ranks = peers.group->size();
  const auto experts = static_cast<std::size_t>(peers.count);
  ExpertRows rows;
  std::vector<std::int64_t> counts_out;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const auto first = static_cast<std::size_t>(
      peers.first + static_cast<std::int64_t>(rank) * peers.stride);
    for (std::size_t e = first; e < first + experts; ++e)
      counts_out.push_back(routing.begin_E[e + 1] - routing.begin_E[e]);
    rows.out_D.push_back(
      {routing.begin_E[first],
       routing.begin_E[first + experts] - routing.begin_E[first]});
  }
  std::vector<std::int64_t> counts_in(ranks * experts);
  const std::vector<std::size_t> sizes(ranks, experts * sizeof(std::int64_t));
  peers.group->exchange(counts_out.data(), sizes, counts_in.data(), sizes,
                        "tokens per expert");
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const auto own
      = counts_in.begin() + static_cast<std::ptrdiff_t>(rank * experts);
    rows.in_D.push_back(
      std::accumulate(own, own + peers.count, std::int64_t{0}));
  }
  rows.here = routing_of(counts_in, experts);
  return rows;
}

void send_rows(const ExpertPeers& peers, const ExpertRows& rows,
               std::int64_t width, const float* from_SW, float* in_RW) {
  peers.group->exchange(from_SW, sizes_of(rows.out_D, width), in_RW,
                        sizes_of(rows.in_D, width), "tokens to experts");
}

void return_rows(const ExpertPeers& peers, const ExpertRows& rows,
                 std::int64_t width, const float* from_RW, float* out_SW) {
  peers.group->exchange(from_RW, sizes_of(rows.in_D, width), out_SW,
                        sizes_of(rows.out_D, width), "tokens from experts");
}

} // namespace troupe::models
