// The losses of algorithm.loss and the weights of algorithm.correction against
// the golden cases: own ones, written as the papers write them, and as second
// opinion those that verl, OpenRLHF and AReaL gave.
#include "config/settings/settings_schema.hpp"
#include "models/losses/correction.hpp"
#include "models/losses/ppo_actor.hpp"

#include <gtest/gtest.h>

#include "tests/support/models/loss_case.hpp"

#include <cmath>
#include <map>
#include <set>

namespace troupe::models {
namespace {

using troupe::testing::batch_of;
using troupe::testing::case_test_name;
using troupe::testing::cases_of;
using troupe::testing::denominators_of;
using troupe::testing::expect_gradient;
using troupe::testing::flat;
using troupe::testing::leaf;
using troupe::testing::LossCase;

const std::map<std::string, PolicyKind>& kinds() {
  static const std::map<std::string, PolicyKind> known{
    {"policy_loss_gspo", PolicyKind::gspo},
    {"policy_loss_gspo_sequence", PolicyKind::gspo},
    {"policy_loss_cispo", PolicyKind::cispo},
    {"policy_loss_sapo", PolicyKind::sapo},
    {"policy_loss_gmpo", PolicyKind::gmpo},
    {"policy_loss_clip_cov", PolicyKind::clip_cov},
    {"policy_loss_kl_cov", PolicyKind::kl_cov},
  };
  return known;
}

std::vector<std::string> policy_cases() {
  std::vector<std::string> functions;
  for (const auto& [function, kind] : kinds())
    functions.push_back(function);
  return cases_of(functions);
}

/// The mean that a case asks for; without one that of its paper.
LossMean mean_of(const LossCase& c) {
  if (c.params.contains("agg"))
    return c.params["agg"] == "token-mean" ? LossMean::token
                                           : LossMean::sequence;
  const auto kind = kinds().at(c.function);
  return kind == PolicyKind::gspo || kind == PolicyKind::gmpo
           ? LossMean::sequence
           : LossMean::token;
}

LossSettings settings_of(const LossCase& c) {
  LossSettings settings;
  settings.policy.kind = kinds().at(c.function);
  settings.mean = mean_of(c);
  settings.clip.low = c.number("eps_low", c.number("eps", 0.2));
  settings.clip.high = c.number("eps_high", c.number("eps", 0.2));
  settings.policy.tau_positive = c.number("tau_pos", 1.0);
  settings.policy.tau_negative = c.number("tau_neg", 1.0);
  settings.policy.cov_kl_coef = c.number("coef", 1.0);
  return settings;
}

TrainBatch policy_batch(const LossCase& c) {
  TrainBatch batch = batch_of(c);
  batch.logprobs_T = leaf(c.in.at("logp"));
  batch.columns["logprobs"] = flat(c.in.at("old_logp"));
  batch.columns["advantages"] = flat(c.in.at("advantages"));
  if (c.in.contains("rollout_logp"))
    batch.columns["rollout_logprobs"] = flat(c.in.at("rollout_logp"));
  if (c.in.contains("chosen")) // clip_cov
    batch.columns["cov_tokens"] = flat(c.in.at("chosen"));
  if (c.out.contains("chosen")) // kl_cov
    batch.columns["cov_tokens"] = flat(c.out.at("chosen"));
  return batch;
}

/// The sequences [first, first + count) of a batch.
TrainBatch part_of(const TrainBatch& whole, std::int64_t width,
                   std::int64_t first, std::int64_t count) {
  const auto cut = [&](const at::Tensor& x_T) {
    return x_T.detach().narrow(0, first * width, count * width).clone();
  };
  TrainBatch part;
  for (std::int64_t i = 0; i <= count; ++i)
    part.cu_seqlens.push_back(i * width);
  part.mask_T = cut(whole.mask_T);
  part.logprobs_T = cut(whole.logprobs_T).set_requires_grad(true);
  for (const auto& [key, column_T] : whole.columns)
    part.columns[key] = cut(column_T);
  return part;
}

/// Expects the loss, metrics and gradient of a batch from its parts.
void expect_parts_add_up(const LossCase& c, const LossSettings& settings) {
  const TrainBatch batch = policy_batch(c);
  const auto denominators = denominators_of(c);
  const LossResult whole = ppo_actor_loss(batch, denominators, settings);
  whole.loss.backward();
  double loss = 0;
  MetricSums sums;
  for (const auto& [first, count] :
       {std::pair<std::int64_t, std::int64_t>{0, 2}, {2, c.rows() - 2}}) {
    const TrainBatch part = part_of(batch, c.width(), first, count);
    const LossResult result = ppo_actor_loss(part, denominators, settings);
    result.loss.backward();
    loss += result.loss.item<float>();
    sums.merge(result.sums);
    // exp of a vector and of its tail may differ in the last bit
    const at::Tensor want_T
      = batch.logprobs_T.grad().narrow(0, first * c.width(), count * c.width());
    EXPECT_TRUE(at::allclose(part.logprobs_T.grad(), want_T, /*rtol=*/1e-6,
                             /*atol=*/1e-9));
  }
  EXPECT_NEAR(loss, whole.loss.item<float>(), 1e-6);
  for (const Sum& sum : whole.sums.all())
    EXPECT_NEAR(sums.value(sum.name), whole.sums.value(sum.name), 1e-6)
      << sum.name;
}

// -- losses
// ---------------------------------------------------------------------

class GoldenPolicies : public ::testing::TestWithParam<std::string> {};

TEST_P(GoldenPolicies, HaveTheReferencesValueAndGradient) {
  const LossCase c(GetParam());
  const TrainBatch batch = policy_batch(c);
  const LossResult result
    = ppo_actor_loss(batch, denominators_of(c), settings_of(c));
  EXPECT_NEAR(result.loss.item<float>(), c.out.at("loss").item(), c.tolerance);
  EXPECT_NEAR(result.sums.value("actor/pg_loss"), c.out.at("loss").item(),
              c.tolerance);
  if (c.out.contains("clip_ratio")) {
    EXPECT_NEAR(result.sums.value("actor/pg_clipfrac"),
                c.out.at("clip_ratio").item(), c.tolerance);
    EXPECT_NEAR(result.sums.value("actor/ppo_kl"), c.out.at("approx_kl").item(),
                c.tolerance);
  }
  result.loss.backward();
  expect_gradient(batch.logprobs_T, c, "dlogp");
}

TEST_P(GoldenPolicies, MicroBatchesAddUpToTheBatch_I1) {
  const LossCase c(GetParam());
  expect_parts_add_up(c, settings_of(c));
}

INSTANTIATE_TEST_SUITE_P(Rl, GoldenPolicies,
                         ::testing::ValuesIn(policy_cases()), case_test_name);

TEST(PolicyLosses, EveryChoiceOfALossHasAGoldenFunction) {
  std::set<PolicyKind> covered;
  for (const auto& [function, kind] : kinds())
    covered.insert(kind);
  for (const auto& word : choices_of(*find_field("algorithm.loss").first))
    EXPECT_TRUE(word == "ppo"
                || covered.contains(policy_options({.kind = word}).kind))
      << word;
}

TEST(PolicyLosses, EveryLossHasAGoldenCase) {
  std::set<std::string> functions;
  for (const char* name :
       {"policy_gspo", "policy_gspo_sequence", "policy_cispo", "policy_sapo",
        "policy_gmpo", "policy_clip_cov", "policy_kl_cov"})
    functions.insert(LossCase(name).function);
  for (const auto& [function, kind] : kinds())
    EXPECT_TRUE(functions.contains(function)) << function;
}

// -- corrections
// ---------------------------------------------------------------------

CorrectionOptions correction_of(const LossCase& c) {
  CorrectionSettings settings;
  settings.kind = c.params["kind"];
  if (settings.kind == "seq-mask-tis") // its name in OpenRLHF and NeMo-RL
    settings.kind = "geometric_mask";
  settings.floor = c.params["low"];
  settings.cap = c.params["high"];
  return correction_options(settings);
}

class GoldenCorrections : public ::testing::TestWithParam<std::string> {};

TEST_P(GoldenCorrections, HaveTheReferencesValueAndGradient) {
  const LossCase c(GetParam());
  LossSettings settings;
  settings.clip.low = settings.clip.high = c.number("eps", 0.2);
  settings.correction = correction_of(c);
  const TrainBatch batch = policy_batch(c);
  const LossResult result = ppo_actor_loss(batch, denominators_of(c), settings);
  EXPECT_NEAR(result.loss.item<float>(), c.out.at("loss").item(), c.tolerance);
  for (const char* name :
       {"is_weight_mean", "is_clip_frac", "rollout_logprob_gap"})
    if (c.out.contains(name)) {
      EXPECT_NEAR(result.sums.value(std::string("actor/") + name),
                  c.out.at(name).item(), c.tolerance)
        << name;
    }
  result.loss.backward();
  expect_gradient(batch.logprobs_T, c, "dlogp");
}

TEST_P(GoldenCorrections, MicroBatchesAddUpToTheBatch_I1) {
  const LossCase c(GetParam());
  LossSettings settings;
  settings.correction = correction_of(c);
  expect_parts_add_up(c, settings);
}

INSTANTIATE_TEST_SUITE_P(
  Rl, GoldenCorrections,
  ::testing::ValuesIn(cases_of({"policy_loss_importance"})), case_test_name);

/// Two sequences of a prompt token and two tokens of the response; the second
/// has become half as likely per token.
TrainBatch drifted_batch() {
  TrainBatch batch;
  batch.cu_seqlens = {0, 3, 6};
  batch.mask_T = at::tensor({0.0F, 1.0F, 1.0F, 0.0F, 1.0F, 1.0F});
  const auto half = static_cast<float>(std::log(0.5));
  batch.logprobs_T
    = at::tensor({0.0F, -1.0F, -1.0F, 0.0F, -1.0F + half, -1.0F + half})
        .set_requires_grad(true);
  batch.columns["logprobs"] = at::full({6}, -1.0F);
  batch.columns["advantages"] = at::ones({6});
  return batch;
}

TEST(Corrections, RejectionReadsThePolicyWhereTheOldOneIsTheSamplers) {
  const TrainBatch batch = drifted_batch();
  MetricSums sums;
  const at::Tensor weights_T = correction_weights_T(
    batch, {.kind = CorrectionKind::rejection, .floor = 0.6, .cap = 2}, sums);
  EXPECT_FALSE(weights_T.requires_grad());
  const std::vector<float> want{0, 1, 1, 0, 0, 0};
  for (std::size_t t = 0; t < want.size(); ++t)
    EXPECT_EQ(weights_T[static_cast<std::int64_t>(t)].item<float>(), want[t]);
  EXPECT_DOUBLE_EQ(sums.value("actor/is_clip_frac"), 0.5);
}

TEST(Corrections, FarRatiosStayFinite) {
  TrainBatch batch = drifted_batch();
  batch.columns["rollout_logprobs"] = at::full({6}, -300.0F);
  for (const auto kind : {CorrectionKind::tis, CorrectionKind::sequence_tis,
                          CorrectionKind::geometric_mask}) {
    MetricSums sums;
    const at::Tensor weights_T
      = correction_weights_T(batch, {.kind = kind, .floor = 0, .cap = 2}, sums);
    EXPECT_TRUE(at::isfinite(weights_T).all().item<bool>());
    EXPECT_DOUBLE_EQ(sums.value("actor/is_clip_frac"), 1.0);
  }
}

TEST(Corrections, ARatioThatOverflowsIsBoundedWhereItsResponseIsKept) {
  TrainBatch batch = drifted_batch();
  // per token exp(100) and exp(-100): their mean in log space is 0
  batch.columns["rollout_logprobs"]
    = at::tensor({0.0F, -101.0F, 99.0F, 0.0F, -101.0F, 99.0F});
  MetricSums sums;
  const at::Tensor weights_T = correction_weights_T(
    batch, {.kind = CorrectionKind::geometric_mask, .floor = 0.5, .cap = 2},
    sums);
  EXPECT_TRUE(at::isfinite(weights_T).all().item<bool>());
  EXPECT_GT(weights_T[1].item<float>(), 1e8F);
}

} // namespace
} // namespace troupe::models
