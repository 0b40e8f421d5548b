// Tokens on their way to experts that neighbouring dp ranks have (expert
// parallelism over data-parallel ranks): every rank sends the rows of its slots
// to the ranks that have the experts, which compute them together with rows of
// other ranks, and gets rows back. All ranks of the group do so in every layer
// with experts, whether or not they have tokens.
//
// S slots of this rank whose experts the group has, R rows that ranks send
// here, D ranks, L experts on each.
#pragma once

#include "models/transformer/router.hpp"

#include <cstdint>
#include <vector>

namespace troupe::net {
class AllToAll;
} // namespace troupe::net

namespace troupe::models {

/// The group that a layer's experts are dealt to. Rank r has the experts from
/// `first + r * stride` on.
struct ExpertPeers {
  net::AllToAll* group = nullptr; ///< null: the experts are all on this rank
  std::int64_t first = 0;
  std::int64_t stride = 0;
  std::int64_t count = 0; ///< L

  bool exist() const { ///< whether other ranks have experts
    return group != nullptr;
  }
};

/// The rows that a rank sends and receives in one layer.
struct ExpertRows {
  struct Run {
    std::int64_t begin = 0; ///< first slot of this rank's routing
    std::int64_t rows = 0;
  };
  std::vector<Run> out_D;         ///< slots that each rank computes
  std::vector<std::int64_t> in_D; ///< rows that each rank sends here
  /// The rows here by expert, as the routing of R tokens to L experts.
  Routing here;

  std::int64_t num_out() const; ///< S
  std::int64_t num_in() const;  ///< R
};

/// Tells the group how many rows go to which expert.
ExpertRows plan_rows(const ExpertPeers& peers, const Routing& routing);

/// Sends runs of slots, from [S, width] in the order of `rows.out_D`, to the
/// experts: in [R, width].
void send_rows(const ExpertPeers& peers, const ExpertRows& rows,
               std::int64_t width, const float* from_SW, float* in_RW);
/// Sends rows back from the experts: to [S, width].
void return_rows(const ExpertPeers& peers, const ExpertRows& rows,
                 std::int64_t width, const float* from_RW, float* out_SW);

} // namespace troupe::models
