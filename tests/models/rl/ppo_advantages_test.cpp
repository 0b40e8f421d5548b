// ppo_advantages on rows: the golden GAE cases through the row format, and
// score shaping, truncation, KL controller and metrics.
#include "config/base/error.hpp"
#include "config/settings/settings.hpp"
#include "models/rl/ppo_advantages.hpp"

#include <gtest/gtest.h>

#include "tests/support/models/golden.hpp"

#include <cmath>
#include <numeric>

namespace troupe::models {
namespace {

using Floats = std::vector<float>;

/// Two samples: prompt of 2 + response of 3 (ended), prompt of 1 + response of
/// 2 (truncated by the length limit).
net::Rows two_samples() {
  const std::vector<std::uint32_t> lengths{5, 3};
  const std::vector<std::uint32_t> lengths_and_one{6, 4};
  const std::vector<std::uint8_t> mask{0, 0, 1, 1, 1, 0, 1, 1};
  const Floats logprobs{0, 0, -1, -2, -0.5F, 0, -1, -1};
  const Floats reference{0, 0, -1.5F, -1, -0.5F, 0, -2, -1};
  const Floats values{9, 9, 0.1F, 0.2F, 0.3F, 7, 9, 0.4F, 0.5F, 0.6F};
  const Floats scores{2, -3};
  const std::vector<std::uint8_t> truncated{0, 1};
  net::Rows rows;
  rows.samples = {SampleId(10), SampleId(11)};
  rows.add(net::make_column("loss_mask", DType::u8, lengths, mask.data()));
  rows.add(net::make_column("logprobs", DType::f32, lengths, logprobs.data()));
  rows.add(
    net::make_column("ref_logprobs", DType::f32, lengths, reference.data()));
  rows.add(
    net::make_column("values", DType::f32, lengths_and_one, values.data()));
  rows.add(net::make_column("scores", DType::f32, {1, 1}, scores.data()));
  rows.add(net::make_column("truncated", DType::u8, {1, 1}, truncated.data()));
  return rows;
}

Settings plain_settings() {
  Settings settings;
  settings.algorithm.discount.gamma = 1;
  settings.algorithm.discount.lam = 1;
  settings.algorithm.whiten = false;
  settings.algorithm.kl_coef = 0.1;
  return settings;
}

Floats column(const FunctionResult& result, const char* key) {
  const auto floats = result.rows.at(key).as<float>();
  return {floats.begin(), floats.end()};
}

void expect_all_near(const Floats& got, const Floats& want) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < want.size(); ++i)
    EXPECT_NEAR(got[i], want[i], 1e-5) << "entry " << i;
}

TEST(PpoAdvantages, SumsFutureRewardsAndBootstrapsTruncatedResponses) {
  const auto settings = plain_settings();
  const auto result
    = run_function("ppo_advantages", two_samples(), {settings, StepId(0), {}});
  expect_all_near(column(result, "kl"), {0, 0, 0.5F, -1, 0, 0, 1, 0});
  // gamma = lam = 1: returns are the sums of future rewards, for the truncated
  // response with V after its last token, 0.6.
  expect_all_near(column(result, "returns"),
                  {0, 0, 2.05F, 2.1F, 2, 0, -2.5F, -2.4F});
  expect_all_near(column(result, "advantages"),
                  {0, 0, 1.95F, 1.9F, 1.7F, 0, -2.9F, -2.9F});
  EXPECT_EQ(result.rows.samples, two_samples().samples);
}

TEST(PpoAdvantages, NothingFollowsATruncatedResponseWithoutBootstrap) {
  auto settings = plain_settings();
  settings.algorithm.discount.bootstrap = false;
  const auto result
    = run_function("ppo_advantages", two_samples(), {settings, StepId(0), {}});
  expect_all_near(column(result, "returns"),
                  {0, 0, 2.05F, 2.1F, 2, 0, -3.1F, -3});
}

TEST(PpoAdvantages, LambdaByLengthLeavesTheReturnsAlone) {
  auto settings = plain_settings();
  settings.algorithm.kl_in = "none";
  settings.algorithm.discount.lam_alpha = 2.0 / 3;
  const auto result
    = run_function("ppo_advantages", two_samples(), {settings, StepId(0), {}});
  expect_all_near(column(result, "returns"), {0, 0, 2, 2, 2, 0, -2.4F, -2.4F});
  // three tokens: lambda 1 - 1 / 2; two: 1 - 1 / (4 / 3)
  expect_all_near(column(result, "advantages"),
                  {0, 0, 0.1F + 0.5F * (0.1F + 0.5F * 1.7F), 0.1F + 0.5F * 1.7F,
                   1.7F, 0, 0.1F + 0.25F * -2.9F, -2.9F});
}

TEST(PpoAdvantages, ReportsTheBatch) {
  const auto settings = plain_settings();
  const MetricSums sums
    = run_function("ppo_advantages", two_samples(), {settings, StepId(0), {}})
        .sums;
  EXPECT_NEAR(sums.value("critic/score/mean"), -0.5, 1e-6);
  EXPECT_NEAR(sums.value("critic/score/max"), 2, 1e-6);
  EXPECT_NEAR(sums.value("critic/rewards/mean"), (2.05 - 3.1) / 2, 1e-6);
  EXPECT_NEAR(sums.value("critic/values/mean"), 1.5 / 5, 1e-6);
  EXPECT_NEAR(sums.value("critic/returns/min"), -2.5, 1e-6);
  EXPECT_NEAR(sums.value("actor/reward_kl_penalty"), (-0.5 + 1) / 2, 1e-6);
  EXPECT_NEAR(sums.value("actor/kl_coef"), 0.1, 1e-12);
  EXPECT_NEAR(sums.value("response_length/mean"), 2.5, 1e-12);
  EXPECT_NEAR(sums.value("response_length/clip_ratio"), 0.5, 1e-12);
  EXPECT_NEAR(sums.value("prompt_length/max"), 2, 1e-12);
  EXPECT_TRUE(sums.has("critic/vf_explained_var"));
}

TEST(PpoAdvantages, ShapesScoresAndReplacesThoseOfTruncatedResponses) {
  auto settings = plain_settings();
  settings.algorithm.kl_in = "none";
  settings.reward.scale = 2;
  settings.reward.bias = 1;
  settings.reward.clip = 4;
  settings.reward.long_response.missing_eos = -1;
  const auto result
    = run_function("ppo_advantages", two_samples(), {settings, StepId(0), {}});
  // 2 * 2 + 1 = 5 is clipped to 4; the truncated response gets -1 and V = 0.6.
  expect_all_near(column(result, "returns"), {0, 0, 4, 4, 4, 0, -0.4F, -0.4F});
  EXPECT_FALSE(result.sums.has("actor/reward_kl_penalty"));
}

TEST(PpoAdvantages, WhitensOverTheWholeBatch) {
  auto settings = plain_settings();
  settings.algorithm.whiten = true;
  const auto result
    = run_function("ppo_advantages", two_samples(), {settings, StepId(0), {}});
  const Floats advantages = column(result, "advantages");
  const double sum = std::accumulate(advantages.begin(), advantages.end(), 0.0);
  double squares = 0;
  for (const float a : advantages)
    squares += double{a} * a;
  EXPECT_NEAR(sum, 0, 1e-5);
  EXPECT_NEAR(squares / 4, 1, 1e-4); // unbiased: 5 tokens
}

TEST(PpoAdvantages, CarriesAnAdaptiveKlCoefficient) {
  auto settings = plain_settings();
  settings.algorithm.kl_control.target = 0.2;
  settings.algorithm.kl_control.horizon = 100;
  const auto result = run_function("ppo_advantages", two_samples(),
                                   {settings, StepId(3), {{"kl_coef", 0.5}}});
  EXPECT_NEAR(result.sums.value("actor/kl_coef"), 0.5, 1e-12);
  // KL 0.25 per sequence: error 0.25, clipped to 0.2; 2 samples of 100.
  EXPECT_NEAR(result.carried.at("kl_coef"), 0.5 * (1 + 0.2 * 2 / 100), 1e-12);
}

TEST(PpoAdvantages, NormalisedReturnsHaveMean0AndVariance1AtFirst) {
  auto settings = plain_settings();
  settings.algorithm.value.norm = true;
  const auto result
    = run_function("ppo_advantages", two_samples(), {settings, StepId(0), {}});
  // The plain returns: 2.05, 2.1, 2, -2.5, -2.4.
  const double mean = 0.25;
  const double deviation
    = std::sqrt((2.05 * 2.05 + 2.1 * 2.1 + 4 + 6.25 + 5.76) / 5 - mean * mean);
  const auto norm = [&](double value) {
    return static_cast<float>((value - mean) / deviation);
  };
  expect_all_near(
    column(result, "returns"),
    {0, 0, norm(2.05), norm(2.1), norm(2), 0, norm(-2.5), norm(-2.4)});
  // No return had been seen: the values were taken unchanged.
  expect_all_near(column(result, "advantages"),
                  {0, 0, 1.95F, 1.9F, 1.7F, 0, -2.9F, -2.9F});
  EXPECT_EQ(result.carried.at("returns_count"), 5);
}

TEST(PpoAdvantages, ValuesAreInTheScaleOfThePreviousReturns) {
  auto settings = plain_settings();
  settings.algorithm.value.norm = true;
  // Two returns seen, 1 and 5: mean 3, deviation 2.
  const CarriedValues seen{
    {"returns_count", 2}, {"returns_sum", 6}, {"returns_sum_squares", 26}};
  const auto result = run_function("ppo_advantages", two_samples(),
                                   {settings, StepId(1), seen});
  // Values 0.1, 0.2, 0.3 mean 3.2, 3.4, 3.6; the returns of the ended response
  // do not depend on them.
  const auto advantages = column(result, "advantages");
  EXPECT_NEAR(advantages[2], 2.05 - 3.2, 1e-5);
  EXPECT_NEAR(advantages[3], 2.1 - 3.4, 1e-5);
  EXPECT_NEAR(advantages[4], 2 - 3.6, 1e-5);
  EXPECT_EQ(result.carried.at("returns_count"), 7);
}

TEST(PpoAdvantages, AnUnknownFunctionIsNamed) {
  const auto settings = plain_settings();
  EXPECT_THROW(run_function("nonsense", {}, {settings, StepId(0), {}}),
               ConfigError);
}

} // namespace
} // namespace troupe::models
