// Margins and centred scores of reward models against the golden case that
// TRL's trainer agrees with.
#include "models/losses/reward.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "tests/support/models/loss_case.hpp"

namespace troupe::models {
namespace {

using troupe::testing::flat;
using troupe::testing::LossCase;

/// Pairs [first, last) of the case as sequences of one token each.
TrainBatch pairs_of(const LossCase& c, std::int64_t first, std::int64_t last) {
  const auto part = [&](const char* name) {
    return flat(c.in.at(name)).slice(0, first, last);
  };
  TrainBatch batch;
  batch.scores_N = at::stack({part("chosen"), part("rejected")}, 1)
                     .view({-1})
                     .contiguous()
                     .set_requires_grad(true);
  for (std::int64_t i = 0; i <= batch.scores_N.numel(); ++i)
    batch.cu_seqlens.push_back(i);
  batch.columns["pair_margin"] = part("margin").repeat_interleave(2);
  return batch;
}

TEST(GoldenRewardMargin, HasTheReferencesValueAndGradientInAnySplit_I1) {
  TROUPE_NEEDS_GOLDEN();
  const LossCase c("rm_margin");
  const auto count = static_cast<std::int64_t>(c.in.at("chosen").values.size());
  const LossSettings settings{.preference
                              = {.center_coef = c.params["center"]}};
  for (const std::int64_t size : {count, std::int64_t{2}}) {
    double loss = 0;
    for (std::int64_t first = 0; first < count; first += size) {
      const auto last = std::min(first + size, count);
      const TrainBatch batch = pairs_of(c, first, last);
      const auto result
        = reward_loss(batch, {.pairs = static_cast<double>(count)}, settings);
      loss += result.loss.item<float>();
      result.loss.backward();
      for (auto pair = first; pair < last; ++pair)
        EXPECT_NEAR(batch.scores_N.grad()[2 * (pair - first)].item<float>(),
                    c.out.at("dchosen").values[pair], c.tolerance);
    }
    EXPECT_NEAR(loss, c.out.at("loss").item(), c.tolerance);
  }
}

TEST(RewardLoss, WithoutMarginsIsThatOfMarginsOfZero) {
  TROUPE_NEEDS_GOLDEN();
  const LossCase c("rm_margin");
  TrainBatch with = pairs_of(c, 0, 3);
  with.columns["pair_margin"].zero_();
  TrainBatch without = pairs_of(c, 0, 3);
  without.columns.clear();
  const Denominators three{.pairs = 3};
  EXPECT_EQ(reward_loss(with, three, {}).loss.item<float>(),
            reward_loss(without, three, {}).loss.item<float>());
}

} // namespace
} // namespace troupe::models
