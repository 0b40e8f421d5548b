// Rows of experts that GPU kernels add to their tokens, run on the host,
// against the CPU's listed rows.
#include "models/gpu/kernels/join_experts.hpp"
#include "models/kernels/elementwise.hpp"
#include "models/transformer/router.hpp"

#include <gtest/gtest.h>

#include "tests/support/models/lane_orders.hpp"

#include <algorithm>
#include <span>

namespace troupe::models::gpu {
namespace {

using troupe::testing::bf16_numbers;
using troupe::testing::expect_near;
using troupe::testing::in_every_order;
using troupe::testing::read_back;
using troupe::testing::stored_as;

const RouterShape joined_shape{.tokens = 11, .experts = 6, .chosen = 4};

Routing joined_routing() {
  const auto logits = bf16_numbers(joined_shape.tokens * 6, 4);
  return route(joined_shape, logits.data(), nullptr);
}

/// Adds the rows of all slots, piece after piece.
template <class From, class To>
std::vector<float> joined_experts(std::int64_t width, std::int64_t rows_at_once,
                                  const float* weight_S) {
  const auto slot_TK = joined_routing().slots_of_tokens();
  const std::int64_t slots = joined_shape.slots();
  const auto rows = stored_as<From>(bf16_numbers(slots * width, 1));
  return in_every_order([&](LaneOrder order) {
    auto to = stored_as<To>(bf16_numbers(joined_shape.tokens * width, 2));
    for (std::int64_t begin = 0; begin < slots; begin += rows_at_once)
      run_on_host(JoinExperts<From, To>{rows.data() + begin * width, to.data(),
                                        slot_TK.data(), weight_S, begin,
                                        std::min(begin + rows_at_once, slots),
                                        joined_shape.chosen, width},
                  joined_shape.tokens, order);
    return read_back(to);
  });
}

std::vector<float> joined_by_cpu(std::int64_t width,
                                 std::span<const float> weight_S) {
  const Routing routing = joined_routing();
  const std::vector<std::int64_t> tokens(routing.token_S.begin(),
                                         routing.token_S.end());
  auto to = bf16_numbers(joined_shape.tokens * width, 2);
  const auto rows = bf16_numbers(joined_shape.slots() * width, 1);
  scatter_rows({tokens, width, 1.0F, weight_S}, rows.data(), to.data());
  return to;
}

TEST(GpuJoinExperts, AddsATokensRowsInOrderOfSlotWithTheCpusSums) {
  const Routing routing = joined_routing();
  for (const std::int64_t width : {1, 37, 700})
    for (const bool weighted : {true, false})
      for (const std::int64_t rows_at_once : {5, 44}) {
        const float* weight_S = weighted ? routing.weight_S.data() : nullptr;
        const auto want = joined_by_cpu(width, weighted ? routing.weight_S
                                                        : std::vector<float>{});
        expect_near(joined_experts<float, float>(width, rows_at_once, weight_S),
                    want, 1e-6F, 1e-6F);
        expect_near(joined_experts<Bf16, float>(width, rows_at_once, weight_S),
                    want, 1e-6F, 1e-6F);
      }
}

TEST(GpuJoinExperts, RoundsASumToBf16Once) {
  const Routing routing = joined_routing();
  EXPECT_EQ((joined_experts<Bf16, Bf16>(37, 44, routing.weight_S.data())),
            read_back(stored_as<Bf16>(
              joined_experts<Bf16, float>(37, 44, routing.weight_S.data()))));
}

} // namespace
} // namespace troupe::models::gpu
