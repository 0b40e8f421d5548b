// Gradients of a router's logits of GPU kernels, run on the host, against the
// router's.
#include "models/gpu/kernels/route_backward.hpp"
#include "models/transformer/router.hpp"

#include <gtest/gtest.h>

#include "tests/support/models/expert_cases.hpp"
#include "tests/support/models/lane_orders.hpp"

namespace troupe::models::gpu {
namespace {

using troupe::testing::bf16_numbers;
using troupe::testing::expect_near;
using troupe::testing::in_every_order;

void expect_routers_gradient(const RouterShape& shape) {
  const auto logits = bf16_numbers(shape.tokens * shape.experts, 1);
  const auto correction = bf16_numbers(shape.experts, 5, 0.2F);
  const Routing routing = route(
    shape, logits.data(), shape.rule.corrected ? correction.data() : nullptr);
  const auto d_weight = bf16_numbers(shape.slots(), 2);
  const auto slots = routing.slots_of_tokens();
  std::vector<float> want(logits.size());
  route_backward(shape, routing, d_weight.data(), want.data());
  const auto got = in_every_order([&](LaneOrder order) {
    std::vector<float> d_logits(logits.size(), 7.0F);
    run_on_host(
      RouteBackward{
        routing.chosen_TK.data(), slots.data(), routing.weight_S.data(),
        d_weight.data(),
        routing.scores_TE.empty() ? nullptr : routing.scores_TE.data(),
        d_logits.data(), choice_rule(shape.rule), shape.experts, shape.chosen},
      shape.tokens, order);
    return d_logits;
  });
  expect_near(got, want, 1e-5F, 1e-6F);
}

TEST(GpuRouteBackward, EqualsTheRoutersUnderEachRule) {
  for (const RouterRule& rule : troupe::testing::router_rules())
    for (const std::int64_t experts : {12, 168})
      expect_routers_gradient({.tokens = 9,
                               .experts = experts,
                               .chosen = 5,
                               .rule = rule,
                               .keeps_scores = false});
}

} // namespace
} // namespace troupe::models::gpu
