// Times of calls whose samples' tokens are cut over devices: shares of whole
// passes, and gathers of keys and values.
#include "plans/cost/cost_model.hpp"

#include <gtest/gtest.h>

#include "tests/support/plans/call_seconds.hpp"

namespace troupe::plans {
namespace {

constexpr double long_tokens = 1 << 17;

/// PPO of 7B with one sample of 128 k tokens, on links that cost nothing.
PlanProblem long_problem() {
  auto problem = make_problem(shape_7b(), 2, 8);
  problem.sizes.samples_per_step = 1;
  problem.sizes.mini_batches = 1;
  problem.sizes.max_sequence_tokens = 1 << 17;
  problem.lengths = Lengths(long_tokens - 1, 1, 1);
  auto& hardware = problem.hardware;
  hardware.call_s = hardware.call_device_s = 0;
  hardware.launch_layer_s = hardware.launch_tp_extra_s = 0;
  hardware.intra_Bps = hardware.inter_Bps = 1e18;
  hardware.intra_lat_s = hardware.inter_lat_s = 0;
  hardware.sum_Bps = 1e18;
  return problem;
}

TEST(ContextCost, RanksShareAttentionAndAllElse) {
  const auto problem = long_problem();
  for (const auto* call : {"ref_inf", "actor_train"}) {
    const auto one = seconds_of_call(problem, call, "d1");
    EXPECT_NEAR(seconds_of_call(problem, call, "c8"), one / 8, 0.03 * one / 8)
      << call;
    EXPECT_NEAR(seconds_of_call(problem, call, "d8"), one, 0.03 * one)
      << call << ": seven ranks have no sample";
  }
}

TEST(ContextCost, GathersAreOfKeysAndValuesOnTheLinkOfTheGroup) {
  auto problem = long_problem();
  problem.shapes["ref"] = problem.shapes["actor"] = shape_34b();
  const auto added = [&](const char* call, const char* strategy) {
    problem.hardware.intra_Bps = 1e18;
    const auto free_s = seconds_of_call(problem, call, strategy);
    problem.hardware.intra_Bps = 1e9;
    return seconds_of_call(problem, call, strategy) - free_s;
  };
  // 48 layers, 8 heads of 128, 2 bytes: what the seven others have
  const auto gather_s = 48 * 2 * 8 * 128 * 2 * long_tokens * 7 / 8 / 1e9;
  EXPECT_NEAR(added("ref_inf", "c8"), gather_s, 1e-3 * gather_s);
  ASSERT_TRUE(problem.sizes.recompute_activations);
  const auto one_sum_s = 48 * 2 * 8 * 128 * 2 * long_tokens * 7 / 8 / 1e9;
  EXPECT_NEAR(added("actor_train", "c8"), 4 * one_sum_s, 0.1 * gather_s)
    << "forward, forward again, backward, and gradients";
  EXPECT_EQ(added("ref_inf", "d8"), 0);
}

TEST(ContextCost, GroupsOfSeveralNodesTakeTheSlowerLink) {
  const auto& cluster = long_problem().cluster;
  const auto span = [&](const char* strategy) {
    return span_of(
      {.devices = ranks(0, 15), .strategy = parse_strategy(strategy)}, cluster);
  };
  EXPECT_FALSE(span("d2c8").context);
  EXPECT_TRUE(span("d2c8").data);
  EXPECT_TRUE(span("c16").context);
  EXPECT_FALSE(span("d2c4t2").context);
  EXPECT_TRUE(span("c8t2").context);
}

} // namespace
} // namespace troupe::plans
