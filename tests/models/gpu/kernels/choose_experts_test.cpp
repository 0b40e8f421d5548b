// The choice of experts of GPU kernels, run on the host, against the router's.
#include "models/gpu/kernels/choose_experts.hpp"
#include "models/transformer/router.hpp"

#include <gtest/gtest.h>

#include "tests/support/models/expert_cases.hpp"
#include "tests/support/models/lane_orders.hpp"

#include <cmath>
#include <set>

namespace troupe::models::gpu {
namespace {

using troupe::testing::bf16_numbers;
using troupe::testing::expect_near;
using troupe::testing::in_every_order;
using troupe::testing::router_rules;

/// Chosen experts, their weights and all scores.
struct Choice {
  std::vector<std::int32_t> experts;
  std::vector<float> weights;
  std::vector<float> scores;
};

RouterShape choice_shape(const RouterRule& rule, std::int64_t experts,
                         std::int64_t chosen) {
  return {.tokens = 9,
          .experts = experts,
          .chosen = chosen,
          .rule = rule,
          .keeps_scores = true};
}

Choice choose(const RouterShape& shape, const std::vector<float>& logits,
              const float* correction_E) {
  Choice out;
  in_every_order([&](LaneOrder order) {
    const auto slots = static_cast<std::size_t>(shape.slots());
    out = {std::vector<std::int32_t>(slots), std::vector<float>(slots),
           std::vector<float>(logits.size())};
    run_on_host(ChooseExperts{logits.data(), correction_E,
                              choice_rule(shape.rule), shape.experts,
                              shape.chosen, out.experts.data(),
                              out.weights.data(), out.scores.data()},
                shape.tokens, order);
    auto joined = out.weights;
    joined.insert(joined.end(), out.scores.begin(), out.scores.end());
    for (const std::int32_t expert : out.experts)
      joined.push_back(static_cast<float>(expert));
    return joined;
  });
  return out;
}

/// Expects the choice, weights and scores of the host's router.
void expect_routers_choice(const RouterShape& shape,
                           const std::vector<float>& logits) {
  const auto correction = bf16_numbers(shape.experts, 5, 0.2F);
  const float* correction_E
    = shape.rule.corrected ? correction.data() : nullptr;
  const Choice got = choose(shape, logits, correction_E);
  const Routing want = route(shape, logits.data(), correction_E);
  EXPECT_EQ(got.experts, want.chosen_TK);
  expect_near(got.scores, want.scores_TE, 1e-6F);
  std::vector<std::int64_t> next_E = want.begin_E;
  for (std::size_t i = 0; i < got.experts.size(); ++i) {
    const auto slot = static_cast<std::size_t>(
      next_E[static_cast<std::size_t>(got.experts[i])]++);
    ASSERT_NEAR(got.weights[i], want.weight_S[slot],
                2e-6F * want.weight_S[slot])
      << i;
  }
}

TEST(GpuChooseExperts, EqualsTheRoutersUnderEachRule) {
  for (const RouterRule& rule : router_rules())
    for (const std::int64_t experts : {12, 168})
      expect_routers_choice(choice_shape(rule, experts, 5),
                            bf16_numbers(9 * experts, 1));
}

TEST(GpuChooseExperts, OfEqualScoresTakesTheLowestIndices) {
  for (const RouterRule& rule : router_rules())
    for (const std::int64_t experts : {12, 168}) {
      expect_routers_choice(
        choice_shape(rule, experts, 4),
        std::vector<float>(static_cast<std::size_t>(9 * experts), 0.25F));
      auto two = bf16_numbers(9 * experts, 2);
      for (float& x : two)
        x = x > 0 ? 1.0F : -1.0F;
      expect_routers_choice(choice_shape(rule, experts, 4), two);
    }
}

TEST(GpuChooseExperts, OfNumbersThatAreNoneTakesDifferentExperts) {
  const RouterShape shape = choice_shape({}, 12, 4);
  const Choice got
    = choose(shape, std::vector<float>(9 * 12, std::nanf("")), nullptr);
  for (auto token = got.experts.begin(); token != got.experts.end();
       token += shape.chosen) {
    const std::set<std::int32_t> different(token, token + shape.chosen);
    EXPECT_EQ(std::ssize(different), shape.chosen);
    EXPECT_GE(*different.begin(), 0);
    EXPECT_LT(*different.rbegin(), shape.experts);
  }
}

} // namespace
} // namespace troupe::models::gpu
