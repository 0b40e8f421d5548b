// The tokens that Clip-Cov and KL-Cov choose.
#include "config/settings/settings.hpp"
#include "models/rl/cov_tokens.hpp"

#include <gtest/gtest.h>

#include "tests/support/models/golden.hpp"

#include <cmath>
#include <numeric>

namespace troupe::models {
namespace {

using Floats = std::vector<float>;

TEST(CovTokens, KlCovChoosesThoseOfTheReference) {
  const auto folder = testing::golden_case_folder("rl/policy_kl_cov");
  const auto in = testing::read_golden(folder / "inputs.safetensors");
  const auto out = testing::read_golden(folder / "outputs.safetensors");
  const double share = testing::read_golden_meta(folder)["params"]["share"];
  const auto mask = in.at("mask").mask();
  const auto cov = token_covariances(in.at("old_logp").floats(),
                                     in.at("advantages").floats(), mask);
  const auto tokens = std::accumulate(mask.begin(), mask.end(), 0.0);
  std::vector<double> chosen(mask.size());
  for (const auto t :
       largest_covariances(cov, mask, static_cast<std::size_t>(share * tokens)))
    chosen[t] = 1;
  EXPECT_EQ(chosen, out.at("chosen").values);
}

/// Rows of `count` samples with a prompt token and four of the response.
net::Rows rows_with(std::uint64_t count) {
  const std::vector<std::uint32_t> lengths(count, 5);
  std::vector<std::uint8_t> mask;
  for (std::uint64_t i = 0; i < count; ++i)
    mask.insert(mask.end(), {0, 1, 1, 1, 1});
  const std::vector<std::uint32_t> ones(count, 1);
  const Floats scores(count);
  const std::vector<std::uint8_t> truncated(count);
  net::Rows rows;
  for (std::uint64_t i = 0; i < count; ++i)
    rows.samples.emplace_back(i);
  rows.add(net::make_column("loss_mask", DType::u8, lengths, mask.data()));
  rows.add(net::make_column("scores", DType::f32, ones, scores.data()));
  rows.add(net::make_column("truncated", DType::u8, ones, truncated.data()));
  return rows;
}

struct Chosen {
  std::vector<std::size_t> tokens;
  std::vector<double> cov;
};

/// Chooses among 100 samples whose covariances are spread over about [-9, 9].
Chosen chosen_tokens(const Settings& settings, StepId step) {
  const net::Rows rows = rows_with(100);
  const RolloutBatch batch(rows);
  Floats logprobs, advantages;
  for (std::size_t t = 0; t < batch.num_tokens(); ++t) {
    const auto x = static_cast<double>(t);
    logprobs.push_back(static_cast<float>(3 * std::sin(x)));
    advantages.push_back(static_cast<float>(3 * std::sin(0.37 * x)));
  }
  net::Rows made;
  made.samples = rows.samples;
  add_cov_tokens(made, batch, advantages, logprobs, {settings, step, {}});
  Chosen found{.tokens = {},
               .cov = token_covariances(logprobs, advantages, batch.mask())};
  const auto flags = made.at("cov_tokens").as<float>();
  for (std::size_t t = 0; t < flags.size(); ++t)
    if (flags[t] != 0) {
      EXPECT_EQ(batch.mask()[t], 1);
      found.tokens.push_back(t);
    }
  return found;
}

Settings settings_for(const char* loss, double share) {
  Settings settings;
  settings.algorithm.loss.kind = loss;
  settings.algorithm.loss.cov_share = share;
  return settings;
}

TEST(CovTokens, ClipCovDrawsInsideTheRangeAndAnewInEachStep_I8) {
  const auto settings = settings_for("clip_cov", 0.02);
  const auto first = chosen_tokens(settings, StepId(1));
  ASSERT_EQ(first.tokens.size(), 8U); // of 400
  for (const auto t : first.tokens) {
    EXPECT_GT(first.cov[t], 1);
    EXPECT_LT(first.cov[t], 5);
  }
  EXPECT_EQ(chosen_tokens(settings, StepId(1)).tokens, first.tokens);
  EXPECT_NE(chosen_tokens(settings, StepId(2)).tokens, first.tokens);
  auto other_seed = settings;
  other_seed.run.seed = 2;
  EXPECT_NE(chosen_tokens(other_seed, StepId(1)).tokens, first.tokens);
}

TEST(CovTokens, ClipCovTakesFewerWhereFewAreInRange) {
  auto settings = settings_for("clip_cov", 0.9);
  settings.algorithm.loss.cov_range = {8.9, 9.5};
  const auto found = chosen_tokens(settings, StepId(1));
  EXPECT_LT(found.tokens.size(), 40U);
  for (const auto t : found.tokens)
    EXPECT_GT(found.cov[t], 8.9);
}

TEST(CovTokens, KlCovTakesAtLeastOne) {
  const auto found = chosen_tokens(settings_for("kl_cov", 1e-6), StepId(1));
  ASSERT_EQ(found.tokens.size(), 1U);
  EXPECT_EQ(found.cov[found.tokens[0]],
            *std::max_element(found.cov.begin(), found.cov.end()));
}

} // namespace
} // namespace troupe::models
