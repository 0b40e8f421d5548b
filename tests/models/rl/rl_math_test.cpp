// Advantages, divergences and means against the golden rl/ cases.
#include "config/base/error.hpp"
#include "models/rl/rl_math.hpp"
#include "models/rl/rollout_batch.hpp"

#include <gtest/gtest.h>

#include "tests/support/models/golden.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::models {
namespace {

using troupe::testing::GoldenTensors;

struct RlCase {
  nlohmann::json meta;
  GoldenTensors in;
  GoldenTensors out;
  double tolerance;

  explicit RlCase(const std::string& name) {
    const auto folder = testing::golden_case_folder("rl/" + name);
    meta = testing::read_golden_meta(folder);
    in = testing::read_golden(folder / "inputs.safetensors");
    out = testing::read_golden(folder / "outputs.safetensors");
    tolerance = meta["tolerance_abs"];
  }
  std::string function() const {
    return meta["function"];
  }
  double param(const char* name) const {
    return meta["params"][name];
  }
  /// Returns GAE of its rows with gamma 1; nothing follows their last tokens.
  std::vector<float> advantages(double lam) const {
    const auto rewards = in.at("rewards").floats();
    const auto values = in.at("values").floats();
    const auto mask = in.at("mask").mask();
    const auto width = static_cast<std::size_t>(in.at("mask").shape[1]);
    std::vector<float> found(rewards.size());
    std::vector<float> returns(width);
    for (std::size_t at = 0; at < rewards.size(); at += width) {
      std::vector<float> own(values.begin() + static_cast<std::ptrdiff_t>(at),
                             values.begin()
                               + static_cast<std::ptrdiff_t>(at + width));
      own.push_back(0);
      gae(std::span(rewards).subspan(at, width), own,
          Mask(mask).subspan(at, width), /*bootstrap=*/false, {1.0, lam},
          std::span(found).subspan(at, width), returns);
    }
    return found;
  }
};

/// The cases of rl/ whose meta.json names one of `functions`.
std::vector<std::string> rl_cases(const std::vector<std::string>& functions) {
  std::vector<std::string> names;
  for (const std::string& name : testing::golden_cases("rl")) {
    const auto folder = testing::golden_folder() / "rl" / name;
    if (!std::filesystem::exists(folder / "outputs.safetensors"))
      continue;
    const std::string function
      = testing::read_golden_meta(folder).value("function", "");
    for (const std::string& wanted : functions)
      if (function == wanted)
        names.push_back(name);
  }
  return names;
}

std::string test_name(const ::testing::TestParamInfo<std::string>& entry) {
  std::string name = entry.param;
  for (char& letter : name)
    if (std::isalnum(static_cast<unsigned char>(letter)) == 0)
      letter = '_';
  return name;
}

void expect_near(const std::vector<float>& got, const std::vector<double>& want,
                 const std::vector<std::uint8_t>& mask, double tolerance) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < want.size(); ++i) {
    const double wanted = mask.empty() || mask[i] != 0 ? want[i] : got[i];
    ASSERT_NEAR(got[i], wanted, tolerance) << "entry " << i;
  }
}

TEST(RlMath, GoldenDataIsComplete) {
  TROUPE_NEEDS_GOLDEN();
  EXPECT_GE(rl_cases({"gae", "gae_bootstrap", "gae_whitened"}).size(), 9U);
}

// -- gae
// ------------------------------------------------------------------------

class GoldenGae : public ::testing::TestWithParam<std::string> {};

TEST_P(GoldenGae, EqualsTheReference) {
  const RlCase c(GetParam());
  const auto& shape = c.in.at("rewards").shape;
  const auto rows = static_cast<std::size_t>(shape[0]);
  const auto width = static_cast<std::size_t>(shape[1]);
  const auto rewards = c.in.at("rewards").floats();
  const auto values = c.in.at("values").floats();
  const auto mask = c.in.at("mask").mask();
  const bool cut = c.function() == "gae_bootstrap";
  std::vector<float> advantages(rewards.size());
  std::vector<float> returns(rewards.size());
  for (std::size_t i = 0; i < rows; ++i) {
    std::vector<float> v(
      values.begin() + static_cast<std::ptrdiff_t>(i * width),
      values.begin() + static_cast<std::ptrdiff_t>((i + 1) * width));
    v.push_back(cut ? static_cast<float>(c.in.at("bootstrap_values").values[i])
                    : 1e9F);
    gae(std::span(rewards).subspan(i * width, width), v,
        Mask(mask).subspan(i * width, width),
        cut && c.in.at("truncated").values[i] != 0,
        {c.param("gamma"), c.param("lam")},
        std::span(advantages).subspan(i * width, width),
        std::span(returns).subspan(i * width, width));
  }
  if (c.function() == "gae_whitened")
    whiten(advantages, mask);
  else
    expect_near(returns, c.out.at("returns").values, mask, c.tolerance);
  expect_near(advantages, c.out.at("advantages").values, mask, c.tolerance);
}

INSTANTIATE_TEST_SUITE_P(Rl, GoldenGae,
                         ::testing::ValuesIn(rl_cases({"gae", "gae_bootstrap",
                                                       "gae_whitened"})),
                         test_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenGae);

TEST(GoldenOverlong, EqualsTheReference) {
  TROUPE_NEEDS_GOLDEN();
  const auto names = rl_cases({"overlong_penalty"});
  ASSERT_FALSE(names.empty());
  for (const auto& name : names) {
    const RlCase c(name);
    const auto most = static_cast<std::ptrdiff_t>(c.param("max_length"));
    const auto& lengths = c.in.at("lengths").values;
    for (std::size_t i = 0; i < lengths.size(); ++i)
      if (lengths[i] <= c.param("max_length")) { // longer ones do not occur
        EXPECT_NEAR(
          -overlong_share(static_cast<std::ptrdiff_t>(lengths[i]), most,
                          static_cast<std::ptrdiff_t>(c.param("buffer")))
            * c.param("factor"),
          c.out.at("penalty").values[i], c.tolerance)
          << name << " " << lengths[i];
      }
  }
}

TEST(GoldenGaePopulation, EqualsTheReference) {
  const RlCase c("gae_whitened_population");
  std::vector<float> advantages = c.advantages(c.param("lam"));
  whiten(advantages, c.in.at("mask").mask(), /*shift_mean=*/true,
         Deviation::population);
  expect_near(advantages, c.out.at("advantages").values, c.in.at("mask").mask(),
              c.tolerance);
}

TEST(GoldenGaeByLength, EqualsTheReference) {
  const RlCase c("gae_by_length");
  const auto mask = c.in.at("mask").mask();
  const auto width = static_cast<std::size_t>(c.in.at("mask").shape[1]);
  std::vector<float> advantages(mask.size());
  for (std::size_t at = 0; at < mask.size(); at += width) {
    const auto own = Mask(mask).subspan(at, width);
    const auto all = c.advantages(adaptive_lam(c.param("alpha"), own));
    std::copy_n(all.begin() + static_cast<std::ptrdiff_t>(at), width,
                advantages.begin() + static_cast<std::ptrdiff_t>(at));
  }
  expect_near(advantages, c.out.at("advantages").values, mask, c.tolerance);
}

class GoldenPackedGae : public ::testing::TestWithParam<std::string> {};

TEST_P(GoldenPackedGae, EqualsTheReference) {
  const RlCase c(GetParam());
  const auto rewards = c.in.at("rewards").floats();
  const auto values = c.in.at("values").floats();
  const auto starts = c.in.at("cu_seqlens").ints();
  const std::vector<std::uint8_t> ones(rewards.size(), 1);
  std::vector<float> advantages(rewards.size());
  std::vector<float> returns(rewards.size());
  for (std::size_t i = 0; i + 1 < starts.size(); ++i) {
    const auto begin = static_cast<std::size_t>(starts[i]);
    const auto length = static_cast<std::size_t>(starts[i + 1]) - begin;
    gae(std::span(rewards).subspan(begin, length),
        std::span(values).subspan(begin + i, length + 1),
        Mask(ones).subspan(begin, length), c.meta["params"]["bootstrap"],
        {c.param("gamma"), c.param("lam")},
        std::span(advantages).subspan(begin, length),
        std::span(returns).subspan(begin, length));
  }
  expect_near(advantages, c.out.at("advantages").values, {}, c.tolerance);
  expect_near(returns, c.out.at("returns").values, {}, c.tolerance);
}

INSTANTIATE_TEST_SUITE_P(Rl, GoldenPackedGae,
                         ::testing::ValuesIn(rl_cases({"gae_packed"})),
                         test_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenPackedGae);

// -- whitening, divergence, rewards
// ---------------------------------------------

class GoldenWhiten : public ::testing::TestWithParam<std::string> {};

TEST_P(GoldenWhiten, EqualsTheReference) {
  const RlCase c(GetParam());
  auto x = c.in.at("x").floats();
  const auto mask = c.in.at("mask").mask();
  whiten(x, mask, c.meta["params"]["shift_mean"]);
  expect_near(x, c.out.at("y").values, mask, c.tolerance);
}

INSTANTIATE_TEST_SUITE_P(Rl, GoldenWhiten,
                         ::testing::ValuesIn(rl_cases({"whiten"})), test_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenWhiten);

TEST(RlMath, WhiteningOneNumberGivesZero) {
  std::vector<float> x{5, 7, 9};
  whiten(x, std::vector<std::uint8_t>{0, 1, 0});
  EXPECT_EQ(x, (std::vector<float>{0, 0, 0}));
}

class GoldenKl : public ::testing::TestWithParam<std::string> {};

TEST_P(GoldenKl, EqualsTheReference) {
  const RlCase c(GetParam());
  const auto kind
    = parse_kl_estimator(c.meta["params"]["kind"].get<std::string>());
  std::vector<float> got;
  for (std::size_t i = 0; i < c.in.at("logp").values.size(); ++i) {
    const double logp = c.in.at("logp").values[i];
    const double ref = c.in.at("ref_logp").values[i];
    got.push_back(static_cast<float>(kl_estimate(kind, logp, ref)));
  }
  expect_near(got, c.out.at("kl").values, {}, c.tolerance);
}

INSTANTIATE_TEST_SUITE_P(Rl, GoldenKl, ::testing::ValuesIn(rl_cases({"kl"})),
                         test_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenKl);

TEST(RlMath, AnUnknownKlEstimatorIsNamed) {
  EXPECT_THROW(parse_kl_estimator("k4"), ConfigError);
}

TEST(RlMath, KlInRewardEqualsTheGoldenCase) {
  TROUPE_NEEDS_GOLDEN();
  const RlCase c("token_reward_kl_in_reward");
  const auto width = static_cast<std::size_t>(c.in.at("kl").shape[1]);
  const auto kl = c.in.at("kl").floats();
  const auto mask = c.in.at("mask").mask();
  std::vector<float> rewards(kl.size());
  for (std::size_t i = 0; i < c.in.at("score").values.size(); ++i) {
    const double clip = c.meta["params"]["clip"][1];
    const double score = std::clamp(c.in.at("score").values[i], -clip, clip);
    token_rewards(std::span(kl).subspan(i * width, width),
                  Mask(mask).subspan(i * width, width), c.param("kl_coef"),
                  score, std::span(rewards).subspan(i * width, width));
  }
  expect_near(rewards, c.out.at("rewards").values, mask, c.tolerance);
}

TEST(RlMath, AdaptiveKlEqualsTheGoldenCase) {
  TROUPE_NEEDS_GOLDEN();
  const RlCase c("adaptive_kl_ctl");
  double coef = c.param("init");
  for (std::size_t i = 0; i < c.in.at("kl").values.size(); ++i) {
    coef = adaptive_kl(coef, c.in.at("kl").values[i], c.param("target"),
                       c.param("horizon"), c.param("n_steps"));
    EXPECT_NEAR(coef, c.out.at("coef").values[i], c.tolerance);
  }
}

// -- means
// ----------------------------------------------------------------------

class GoldenAggregation : public ::testing::TestWithParam<std::string> {};

TEST_P(GoldenAggregation, WeightsGiveTheReferencesMean) {
  const RlCase c(GetParam());
  const std::string mode = c.meta["params"]["mode"];
  const auto mask = c.in.at("mask").mask();
  const auto rows = c.in.at("mask").shape[0];
  const auto width = c.in.at("mask").shape[1];
  std::vector<std::int64_t> starts;
  for (std::int64_t i = 0; i <= rows; ++i)
    starts.push_back(i * width);
  double tokens = 0;
  for (const std::uint8_t own : mask)
    tokens += own;
  const LossMean kind = mode == "token-mean"            ? LossMean::token
                        : mode == "seq-mean-token-sum"  ? LossMean::sequence_sum
                        : mode == "seq-mean-token-mean" ? LossMean::sequence
                                                        : LossMean::horizon_sum;
  const auto weights = loss_weights(
    kind, mask, starts,
    {tokens, static_cast<double>(rows), static_cast<double>(width)});
  double total = 0;
  for (std::size_t i = 0; i < weights.size(); ++i)
    total += weights[i] * c.in.at("mat").values[i];
  EXPECT_NEAR(total, c.out.at("loss").item(), c.tolerance);
}

INSTANTIATE_TEST_SUITE_P(Rl, GoldenAggregation,
                         ::testing::ValuesIn(rl_cases({"loss_aggregation"})),
                         test_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenAggregation);

TEST(RlMath, MomentsCountOnlyUnmaskedNumbers) {
  Moments moments;
  moments.add(std::vector<float>{1, 100, 3},
              std::vector<std::uint8_t>{1, 0, 1});
  EXPECT_DOUBLE_EQ(moments.mean(), 2);
  EXPECT_DOUBLE_EQ(moments.variance(), 1);
  EXPECT_DOUBLE_EQ(moments.max, 3);
  EXPECT_DOUBLE_EQ(moments.min, 1);
}

} // namespace
} // namespace troupe::models
