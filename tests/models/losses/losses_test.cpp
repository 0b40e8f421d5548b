// Losses and their gradients against the golden rl/ cases; denominators make
// any split into micro-batches give the same sum (I1).
#include "models/losses/dpo.hpp"
#include "models/losses/ppo_actor.hpp"
#include "models/losses/ppo_critic.hpp"
#include "models/losses/reward.hpp"
#include "models/losses/sft.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "tests/support/models/loss_case.hpp"

#include <cmath>

namespace troupe::models {
namespace {

using troupe::testing::batch_of;
using troupe::testing::denominators_of;
using troupe::testing::expect_gradient;
using troupe::testing::flat;
using troupe::testing::leaf;
using troupe::testing::LossCase;

// -- policy
// ---------------------------------------------------------------------

class GoldenPolicyLoss : public ::testing::TestWithParam<const char*> {};

TEST_P(GoldenPolicyLoss, HasTheReferencesValueAndGradient) {
  TROUPE_NEEDS_GOLDEN();
  const LossCase c(GetParam());
  TrainBatch batch = batch_of(c);
  batch.logprobs_T = leaf(c.in.at("logp"));
  batch.columns["logprobs"] = flat(c.in.at("old_logp"));
  batch.columns["advantages"] = flat(c.in.at("advantages"));
  LossSettings settings;
  settings.clip.low = c.params["eps_low"];
  settings.clip.high = c.params["eps_high"];
  if (c.params.contains("dual_clip") && !c.params["dual_clip"].is_null())
    settings.policy.dual_clip = c.params["dual_clip"];
  if (c.params["agg"] == "seq-mean-token-mean")
    settings.mean = LossMean::sequence;
  if (c.params["agg"] == "dr-grpo")
    settings.mean = LossMean::sequence_horizon;
  settings.horizon // the padded width
    = static_cast<double>(batch.mask_T.numel())
      / static_cast<double>(batch.num_sequences());
  const LossResult result = ppo_actor_loss(batch, denominators_of(c), settings);
  EXPECT_NEAR(result.loss.item<float>(), c.out.at("loss").item(), c.tolerance);
  EXPECT_NEAR(result.sums.value("actor/pg_loss"), c.out.at("loss").item(),
              c.tolerance);
  EXPECT_NEAR(result.sums.value("actor/pg_clipfrac"),
              c.out.at("clip_ratio").item(), c.tolerance);
  EXPECT_NEAR(result.sums.value("actor/ppo_kl"), c.out.at("approx_kl").item(),
              c.tolerance);
  result.loss.backward();
  expect_gradient(batch.logprobs_T, c, "dlogp");
}

INSTANTIATE_TEST_SUITE_P(
  Rl, GoldenPolicyLoss,
  ::testing::Values("policy_loss_ppo", "policy_loss_clip_higher",
                    "policy_loss_dual_clip", "gen_policy_dapo",
                    "gen_policy_dual_clip_tight", "gen_policy_seq_mean",
                    "gen_policy_dr_grpo"));

class GoldenKlInLoss : public ::testing::TestWithParam<const char*> {};

TEST_P(GoldenKlInLoss, AddsTheEstimatorsGradient) {
  TROUPE_NEEDS_GOLDEN();
  LossCase c(GetParam());
  auto& shape = c.in["mask"].shape;
  shape = c.in.at("logp").shape;
  c.in["mask"].values.assign(c.in.at("logp").values.size(), 1.0);
  TrainBatch batch = batch_of(c);
  batch.logprobs_T = leaf(c.in.at("logp"));
  batch.columns["logprobs"] = flat(c.in.at("logp"));
  batch.columns["advantages"] = at::zeros_like(batch.mask_T);
  batch.columns["ref_logprobs"] = flat(c.in.at("ref_logp"));
  LossSettings settings;
  settings.kl_in_loss = true;
  settings.kl_coef = 1;
  settings.kl_estimator = c.params["kind"];
  const Denominators ones{.tokens = 1, .sequences = 1};
  ppo_actor_loss(batch, ones, settings).loss.backward();
  expect_gradient(batch.logprobs_T, c, "dlogp");
}

INSTANTIATE_TEST_SUITE_P(Rl, GoldenKlInLoss,
                         ::testing::Values("kl_k1_grad", "kl_k2_grad",
                                           "kl_k3_grad", "gen_kl_k3_far_grad"));

TEST(PpoActorLoss, FarKlHasNoNanGradient) {
  TrainBatch batch;
  batch.cu_seqlens = {0, 2};
  batch.mask_T = at::ones({2});
  batch.logprobs_T = at::tensor({-300.0F, -1.0F}).set_requires_grad(true);
  batch.columns["logprobs"] = at::tensor({-300.0F, -1.0F});
  batch.columns["advantages"] = at::zeros({2});
  batch.columns["ref_logprobs"] = at::tensor({-1.0F, -300.0F});
  LossSettings settings;
  settings.kl_in_loss = true;
  settings.kl_coef = 1;
  settings.kl_estimator = "k3";
  ppo_actor_loss(batch, {.tokens = 2, .sequences = 1}, settings)
    .loss.backward();
  EXPECT_EQ(batch.logprobs_T.grad()[0].item<float>(), 0.0F);
  EXPECT_EQ(batch.logprobs_T.grad()[1].item<float>(), 0.0F);
}

TEST(PpoActorLoss, EntropyBonusEqualsTheGoldenCase) {
  TROUPE_NEEDS_GOLDEN();
  const LossCase c("gen_masked_entropy_loss");
  const auto& shape = c.in.at("logits").shape;
  const at::Tensor logits_TV = leaf(c.in.at("logits"));
  const at::Tensor all_TV = at::log_softmax(logits_TV.view({-1, shape[2]}), -1);
  const at::Tensor labels_T = flat(c.in.at("labels")).to(at::kLong);
  TrainBatch batch = batch_of(c);
  batch.logprobs_T = all_TV.gather(1, labels_T.unsqueeze(1)).squeeze(1);
  batch.entropy_T = -(all_TV.exp() * all_TV).sum(-1);
  // A policy loss of -logp: old = now and A = 1 have its gradient.
  batch.columns["logprobs"] = batch.logprobs_T.detach();
  batch.columns["advantages"] = at::ones_like(batch.mask_T);
  LossSettings settings;
  settings.entropy_coef = c.params["entropy_coef"];
  const LossResult result = ppo_actor_loss(batch, denominators_of(c), settings);
  EXPECT_NEAR(result.sums.value("actor/entropy"), c.out.at("entropy").item(),
              c.tolerance);
  result.loss.backward();
  expect_gradient(logits_TV, c, "dlogits");
}

TEST(PpoActorLoss, TakesOnlyTheKlCoefficientFromCarriedValues) {
  LossSettings settings{.kl_coef = 0.5};
  take_carried(ppo_actor_loss_entry(), "kl_coef", 0.25, settings);
  take_carried(ppo_actor_loss_entry(), "another", 3.0, settings);
  take_carried(ppo_critic_loss_entry(), "kl_coef", 4.0, settings);
  EXPECT_EQ(settings.kl_coef, 0.25);
}

TEST(PpoActorLoss, MicroBatchesAddUpToTheBatch_I1) {
  TROUPE_NEEDS_GOLDEN();
  const LossCase c("gen_policy_dapo");
  const auto width = c.in.at("mask").shape[1];
  const auto rows = c.in.at("mask").shape[0];
  const auto part_of = [&](std::int64_t first, std::int64_t count) {
    const auto cut = [&](const char* name) {
      return flat(c.in.at(name)).narrow(0, first * width, count * width);
    };
    TrainBatch batch;
    for (std::int64_t i = 0; i <= count; ++i)
      batch.cu_seqlens.push_back(i * width);
    batch.mask_T = cut("mask").clone();
    batch.logprobs_T = cut("logp").clone();
    batch.columns["logprobs"] = cut("old_logp").clone();
    batch.columns["advantages"] = cut("advantages").clone();
    return batch;
  };
  for (const LossMean mean :
       {LossMean::token, LossMean::sequence, LossMean::sequence_horizon}) {
    LossSettings settings;
    settings.mean = mean;
    settings.horizon = 7;
    const auto run = [&](std::int64_t first, std::int64_t count) {
      return ppo_actor_loss(part_of(first, count), denominators_of(c),
                            settings);
    };
    const LossResult whole = run(0, rows);
    LossResult split = run(0, 2);
    const LossResult rest = run(2, rows - 2);
    split.sums.merge(rest.sums);
    EXPECT_NEAR((split.loss + rest.loss).item<float>(),
                whole.loss.item<float>(), 1e-6);
    EXPECT_NEAR(split.sums.value("actor/pg_loss"),
                whole.sums.value("actor/pg_loss"), 1e-6);
  }
}

// -- value
// ----------------------------------------------------------------------

class GoldenValueLoss : public ::testing::TestWithParam<const char*> {};

TEST_P(GoldenValueLoss, HasTheReferencesValueAndGradient) {
  TROUPE_NEEDS_GOLDEN();
  const LossCase c(GetParam());
  TrainBatch batch = batch_of(c);
  batch.values_T = leaf(c.in.at("values"));
  batch.columns["values"] = flat(c.in.at("old_values"));
  batch.columns["returns"] = flat(c.in.at("returns"));
  LossSettings settings;
  settings.value_clip = c.params["eps"];
  const double factor = c.params["half"] ? 1.0 : 2.0;
  const LossResult result
    = ppo_critic_loss(batch, denominators_of(c), settings);
  EXPECT_NEAR(factor * result.loss.item<float>(), c.out.at("loss").item(),
              c.tolerance);
  EXPECT_NEAR(result.sums.value("critic/vf_clipfrac"),
              c.out.at("clipfrac").item(), c.tolerance);
  result.loss.backward();
  expect_gradient(batch.values_T, c, "dvalues", factor);
}

INSTANTIATE_TEST_SUITE_P(Rl, GoldenValueLoss,
                         ::testing::Values("value_loss_clipped",
                                           "gen_value_loss_full"));

// -- likelihood and pairs
// -------------------------------------------------------

TEST(RewardLoss, EqualsTheGoldenCase) {
  TROUPE_NEEDS_GOLDEN();
  const LossCase c("rm_pairwise");
  const auto pairs = static_cast<double>(c.in.at("chosen").values.size());
  TrainBatch batch;
  batch.scores_N
    = at::stack({flat(c.in.at("chosen")), flat(c.in.at("rejected"))}, 1)
        .view({-1})
        .contiguous()
        .set_requires_grad(true);
  for (std::int64_t i = 0; i <= batch.scores_N.numel(); ++i)
    batch.cu_seqlens.push_back(i);
  const LossResult result = reward_loss(batch, {.pairs = pairs}, {});
  EXPECT_NEAR(result.loss.item<float>(), c.out.at("loss").item(), c.tolerance);
  EXPECT_NEAR(result.sums.value("train/loss"), c.out.at("loss").item(),
              c.tolerance);
}

// Golden sums as sequences of one token each, chosen and rejected alternating.
class GoldenDpoLoss : public ::testing::TestWithParam<std::string> {};

TEST_P(GoldenDpoLoss, HasTheReferencesValueAndRewards) {
  const LossCase c(GetParam());
  const auto pairs = c.in.at("pc").values.size();
  std::vector<float> policy, reference;
  TrainBatch batch;
  batch.cu_seqlens = {0};
  for (std::size_t i = 0; i < pairs; ++i) {
    for (const char* key : {"pc", "pr"})
      policy.push_back(static_cast<float>(c.in.at(key).values[i]));
    for (const char* key : {"rc", "rj"})
      reference.push_back(static_cast<float>(c.in.at(key).values[i]));
    batch.cu_seqlens.insert(batch.cu_seqlens.end(),
                            {static_cast<std::int64_t>(2 * i + 1),
                             static_cast<std::int64_t>(2 * i + 2)});
  }
  batch.mask_T = at::ones({static_cast<std::int64_t>(2 * pairs)});
  batch.logprobs_T = at::tensor(policy).set_requires_grad(true);
  batch.columns["ref_logprobs"] = at::tensor(reference);
  const LossResult result = dpo_loss(
    batch, {.pairs = static_cast<double>(pairs)},
    {.preference = {.kind = c.params["ipo"].get<bool>() ? "ipo" : "dpo",
                    .beta = c.params["beta"],
                    .label_smoothing = c.params["label_smoothing"]}});
  EXPECT_NEAR(result.loss.item<float>(), c.out.at("loss").item(), c.tolerance);
  double chosen = 0, rejected = 0;
  for (std::size_t i = 0; i < pairs; ++i) {
    chosen += c.out.at("chosen_rewards").values[i];
    rejected += c.out.at("rejected_rewards").values[i];
  }
  const auto count = static_cast<double>(pairs);
  EXPECT_NEAR(result.sums.value("train/chosen_reward"), chosen / count,
              c.tolerance);
  EXPECT_NEAR(result.sums.value("train/rejected_reward"), rejected / count,
              c.tolerance);
  EXPECT_NEAR(result.sums.value("train/reward_margin"),
              (chosen - rejected) / count, c.tolerance);
}

INSTANTIATE_TEST_SUITE_P(Rl, GoldenDpoLoss,
                         ::testing::ValuesIn(testing::cases_of({"dpo"})),
                         testing::case_test_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenDpoLoss);

class GoldenPairs : public ::testing::TestWithParam<const char*> {};

// Golden sums spread over as many tokens as the case says.
TEST_P(GoldenPairs, WithoutAReferenceHaveTheReferencesValueAndGradient) {
  const LossCase c(GetParam());
  const auto pairs = c.in.at("chosen").values.size();
  std::vector<float> logprobs;
  TrainBatch batch;
  batch.cu_seqlens = {0};
  for (std::size_t i = 0; i < pairs; ++i)
    for (const std::string side : {"chosen", "rejected"}) {
      const double length = c.in.at(side + "_lengths").values[i];
      logprobs.insert(logprobs.end(), static_cast<std::size_t>(length),
                      static_cast<float>(c.in.at(side).values[i] / length));
      batch.cu_seqlens.push_back(static_cast<std::int64_t>(logprobs.size()));
    }
  batch.mask_T = at::ones({batch.cu_seqlens.back()});
  batch.logprobs_T = at::tensor(logprobs).set_requires_grad(true);
  const PreferenceSettings preference{.kind = c.function.substr(5),
                                      .beta = c.params["beta"],
                                      .margin = c.number("margin", 0)};
  const LossResult result = dpo_loss(
    batch, {.pairs = static_cast<double>(pairs)}, {.preference = preference});
  EXPECT_NEAR(result.loss.item<float>(), c.out.at("loss").item(), c.tolerance);
  result.loss.backward();
  for (std::size_t i = 0; i < pairs; ++i) // each token has the sum's gradient
    EXPECT_NEAR(batch.logprobs_T.grad()[batch.cu_seqlens[2 * i]].item<float>(),
                c.out.at("dchosen").values[i], c.tolerance);
}

INSTANTIATE_TEST_SUITE_P(Rl, GoldenPairs,
                         ::testing::Values("pair_simpo", "pair_orpo"));

TEST(DpoLoss, CountsOnlyTokensOfResponses) {
  TrainBatch batch;
  batch.cu_seqlens = {0, 3, 5};
  batch.mask_T = at::tensor({0.0F, 1.0F, 1.0F, 0.0F, 1.0F});
  batch.logprobs_T
    = at::tensor({9.0F, -1.0F, -2.0F, 9.0F, -5.0F}).set_requires_grad(true);
  batch.columns["ref_logprobs"] = at::tensor({7.0F, -2.0F, -2.0F, 7.0F, -4.0F});
  const LossResult result
    = dpo_loss(batch, {.pairs = 4}, {.preference = {.beta = 0.5}});
  // h = 1 - (-1) = 2; three other pairs elsewhere
  const double loss = std::log1p(std::exp(-1.0));
  EXPECT_NEAR(result.loss.item<float>(), loss / 4, 1e-6);
  EXPECT_NEAR(result.sums.value("train/loss"), loss, 1e-6);
  EXPECT_DOUBLE_EQ(result.sums.value("train/accuracy"), 1);
  result.loss.backward();
  const double slope = 0.5 / (1 + std::exp(1.0)) / 4;
  const at::Tensor& grad = batch.logprobs_T.grad();
  EXPECT_FLOAT_EQ(grad[0].item<float>(), 0);
  EXPECT_NEAR(grad[1].item<float>(), -slope, 1e-7);
  EXPECT_NEAR(grad[4].item<float>(), slope, 1e-7);
}

TEST(SftLoss, IsTheMeanOverMaskedTokens) {
  TrainBatch batch;
  batch.cu_seqlens = {0, 3, 5};
  batch.mask_T = at::tensor({0.0F, 1.0F, 1.0F, 0.0F, 1.0F});
  batch.logprobs_T
    = at::tensor({0.0F, -1.0F, -2.0F, 0.0F, -3.0F}).set_requires_grad(true);
  const LossResult result = sft_loss(batch, {.tokens = 4}, {});
  EXPECT_FLOAT_EQ(result.loss.item<float>(), 1.5F); // a fourth token elsewhere
  EXPECT_DOUBLE_EQ(result.sums.value("train/loss"), 2.0);
  EXPECT_DOUBLE_EQ(result.sums.value("train/tokens"), 3.0);
  result.loss.backward();
  EXPECT_FLOAT_EQ(batch.logprobs_T.grad()[1].item<float>(), -0.25F);
  EXPECT_FLOAT_EQ(batch.logprobs_T.grad()[3].item<float>(), 0.0F);
}

} // namespace
} // namespace troupe::models
