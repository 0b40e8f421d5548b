// The order of slots by expert of GPU kernels, run on the host, against
// std::stable_sort; and the experts' load excess against the router's.
#include "models/gpu/kernels/load_excess.hpp"
#include "models/gpu/kernels/sort_experts.hpp"
#include "models/transformer/router.hpp"

#include <gtest/gtest.h>

#include "tests/support/models/expert_cases.hpp"
#include "tests/support/models/lane_orders.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

namespace troupe::models::gpu {
namespace {

using troupe::testing::bf16_numbers;
using troupe::testing::in_every_order;
using troupe::testing::skewed_experts;

constexpr std::int64_t sorted_chosen = 3;

/// Slots in order, as a kernel writes them.
struct SortedSlots {
  std::vector<std::int64_t> slot_TK;
  std::vector<std::int32_t> token_S;
  std::vector<float> weight_S;
  std::vector<std::int32_t> ends_CE;

  bool operator==(const SortedSlots&) const = default;
};

std::int64_t sorted_pieces(std::size_t slots, std::int64_t rows_at_once) {
  return pieces_of(static_cast<std::int64_t>(slots), rows_at_once);
}

SortedSlots sorted_by_kernel(const std::vector<std::int32_t>& experts_TK,
                             const std::vector<float>& weight_TK,
                             std::int32_t experts, std::int64_t rows_at_once) {
  SortedSlots out;
  in_every_order([&](LaneOrder order) {
    const std::size_t slots = experts_TK.size();
    out = {
      std::vector<std::int64_t>(slots, -1),
      std::vector<std::int32_t>(slots, -1), std::vector<float>(slots),
      std::vector<std::int32_t>(
        static_cast<std::size_t>(sorted_pieces(slots, rows_at_once) * experts),
        -1)};
    run_on_host(SortExperts{experts_TK.data(), weight_TK.data(),
                            static_cast<std::int64_t>(slots), experts,
                            sorted_chosen, rows_at_once, out.slot_TK.data(),
                            out.token_S.data(), out.weight_S.data(),
                            out.ends_CE.data()},
                experts, order);
    std::vector<std::int64_t> joined = out.slot_TK;
    joined.insert(joined.end(), out.token_S.begin(), out.token_S.end());
    joined.insert(joined.end(), out.ends_CE.begin(), out.ends_CE.end());
    for (const float weight : out.weight_S)
      joined.push_back(std::bit_cast<std::int32_t>(weight));
    return joined;
  });
  return out;
}

SortedSlots sorted_slowly(const std::vector<std::int32_t>& experts_TK,
                          const std::vector<float>& weight_TK,
                          std::int32_t experts, std::int64_t rows_at_once) {
  std::vector<std::size_t> order(experts_TK.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {},
                           [&](std::size_t i) { return experts_TK[i]; });
  SortedSlots out;
  out.slot_TK.resize(order.size());
  for (std::size_t slot = 0; slot < order.size(); ++slot) {
    const std::size_t i = order[slot];
    out.slot_TK[i] = static_cast<std::int64_t>(slot);
    out.token_S.push_back(static_cast<std::int32_t>(i / sorted_chosen));
    out.weight_S.push_back(weight_TK[i]);
  }
  for (std::int64_t c = 0; c < sorted_pieces(order.size(), rows_at_once); ++c)
    for (std::int32_t e = 0; e < experts; ++e) {
      std::int32_t end = 0; // of the slots of the piece
      for (auto slot = static_cast<std::size_t>(c * rows_at_once);
           slot < order.size()
           && slot < static_cast<std::size_t>((c + 1) * rows_at_once);
           ++slot)
        end += experts_TK[order[slot]] <= e ? 1 : 0;
      out.ends_CE.push_back(end);
    }
  return out;
}

TEST(GpuSortExperts, KeepsTheOrderOfTokensWithinAnExpertAndEndsEachPiece) {
  for (const std::int64_t tokens : {1, 40, 257, 700})
    for (const std::int32_t experts : {2, 5, 128})
      for (const std::int64_t rows_at_once : {7, 300, 100'000}) {
        const auto experts_TK = skewed_experts(tokens * sorted_chosen, experts);
        const auto weight_TK = bf16_numbers(tokens * sorted_chosen, 3);
        EXPECT_EQ(
          sorted_by_kernel(experts_TK, weight_TK, experts, rows_at_once),
          sorted_slowly(experts_TK, weight_TK, experts, rows_at_once))
          << tokens << " tokens, " << experts << " experts, " << rows_at_once;
      }
}

TEST(GpuLoadExcess, EqualsTheRoutersWithTokensThatCountSeveralTimes) {
  for (const std::int64_t tokens : {1, 90, 700}) {
    const RouterShape shape{
      .tokens = tokens, .experts = 9, .chosen = sorted_chosen};
    Routing routing;
    routing.chosen_TK = skewed_experts(shape.slots(), 9);
    std::vector<std::int64_t> copies_T;
    for (std::int64_t t = 0; t < tokens; ++t)
      copies_T.push_back(1 + t % 4);
    const auto before = bf16_numbers(9, 1);
    auto want = before;
    add_load_excess(shape, routing, copies_T, want.data());
    EXPECT_EQ(in_every_order([&](LaneOrder order) {
                auto excess = before;
                run_on_host(LoadExcess{routing.chosen_TK.data(),
                                       copies_T.data(), shape.slots(), 9,
                                       sorted_chosen, excess.data()},
                            1, order);
                return excess;
              }),
              want);
  }
}

} // namespace
} // namespace troupe::models::gpu
