// Filters against Hugging Face (golden samplers/), draws against invariant I2.
#include "config/base/error.hpp"
#include "models/generate/sampler.hpp"

#include <gtest/gtest.h>

#include "tests/support/models/golden.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace troupe::models {
namespace {

using troupe::testing::GoldenTensors;

GenerateOptions options_of(const nlohmann::json& params) {
  GenerateOptions options;
  options.temperature = params.value("temperature", 1.0);
  options.top_k = params.value("top_k", std::int64_t{0});
  options.top_p = params.value("top_p", 1.0);
  options.min_p = params.value("min_p", 0.0);
  options.repetition_penalty = params.value("repetition_penalty", 1.0);
  return options;
}

/// log softmax of the logits that the filters left.
std::vector<double> normalized(std::span<const float> filtered) {
  const double total = log_sum_exp(filtered, 1.0);
  std::vector<double> out;
  for (const float logit : filtered)
    out.push_back(logit - total);
  return out;
}

void expect_equal_logprobs(std::vector<double> got, std::vector<double> want,
                           bool sorted) {
  if (sorted) {
    std::sort(got.begin(), got.end());
    std::sort(want.begin(), want.end());
  }
  for (std::size_t i = 0; i < want.size(); ++i) {
    if (std::isinf(want[i]))
      ASSERT_EQ(got[i], want[i]) << "entry " << i;
    else
      ASSERT_NEAR(got[i], want[i], 1e-5 + 1e-6 * std::abs(want[i]))
        << "entry " << i;
  }
}

class GoldenSampler : public ::testing::TestWithParam<std::string> {};

TEST_P(GoldenSampler, FiltersLikeHuggingFace) {
  const auto folder = testing::golden_folder() / "samplers" / GetParam();
  const GoldenTensors io = testing::read_golden(folder / "io.safetensors");
  const auto meta = testing::read_golden_meta(folder);
  const auto& shape = io.at("logits").shape;
  const auto vocab = static_cast<std::size_t>(shape[1]);
  const auto previous = io.at("previous_tokens").ints();
  const auto starts = io.at("previous_cu_seqlens").ints();
  Sampler sampler(options_of(meta["params"]), shape[1]);
  for (std::size_t row = 0; row < static_cast<std::size_t>(shape[0]); ++row) {
    SCOPED_TRACE("row " + std::to_string(row));
    auto logits = io.at("logits").floats();
    const std::span<float> logits_V(logits.data() + row * vocab, vocab);
    sampler.filter(logits_V,
                   std::span(previous).subspan(
                     static_cast<std::size_t>(starts[row]),
                     static_cast<std::size_t>(starts[row + 1] - starts[row])));
    const auto& want = io.at("filtered_logprobs").values;
    const auto first = want.begin() + static_cast<std::ptrdiff_t>(row * vocab);
    const auto kept = std::count_if(logits_V.begin(), logits_V.end(),
                                    [](float x) { return !std::isinf(x); });
    EXPECT_EQ(kept, io.at("kept_count").values[row]);
    expect_equal_logprobs(normalized(logits_V),
                          {first, first + static_cast<std::ptrdiff_t>(vocab)},
                          io.at("tie_sensitive").values[row] != 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Samplers, GoldenSampler,
                         ::testing::ValuesIn(testing::golden_cases("samplers")),
                         [](const auto& entry) {
                           std::string name = entry.param;
                           std::replace(name.begin(), name.end(), '.', '_');
                           return name;
                         });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenSampler);

TEST(GoldenSamplers, AllCasesAreThere) {
  TROUPE_NEEDS_GOLDEN();
  EXPECT_GE(testing::golden_cases("samplers").size(), 18U);
}

std::vector<float> some_logits(std::size_t vocab) {
  std::vector<float> logits(vocab);
  for (std::size_t i = 0; i < vocab; ++i)
    logits[i] = static_cast<float>(3 * std::sin(1.7 * static_cast<double>(i)));
  return logits;
}

TEST(Sampler, TakesTheArgmaxOfScaledLogitsAndKeyedNoise_I2) {
  const auto logits = some_logits(515);
  GenerateOptions options;
  options.temperature = 0.8;
  options.seed = 11;
  Sampler sampler(options, 515);
  for (std::uint32_t position = 0; position < 50; ++position) {
    const DrawName name{options.seed, 4, 9, position};
    std::vector<float> noise(logits.size());
    gumbel_noise(name, 0, noise);
    for (std::size_t i = 0; i < noise.size(); ++i)
      noise[i] += logits[i] / 0.8F;
    const auto want = std::max_element(noise.begin(), noise.end());
    EXPECT_EQ(sampler.draw(logits, {}, 0, name).id, want - noise.begin());
  }
}

TEST(Sampler, DrawsWithTheSoftmaxFrequencies) {
  const std::vector<float> logits{0.0F, 1.0F, 2.0F, -1.0F, 0.5F};
  Sampler sampler({}, 5);
  std::vector<double> counts(5);
  constexpr int draws = 40000;
  for (std::uint32_t i = 0; i < draws; ++i)
    ++counts[static_cast<std::size_t>(
      sampler.draw(logits, {}, 0, {1, 0, i, 3}).id)];
  const double total = log_sum_exp(logits, 1.0);
  double chi_square = 0;
  for (std::size_t i = 0; i < 5; ++i) {
    const double expected = draws * std::exp(logits[i] - total);
    chi_square += (counts[i] - expected) * (counts[i] - expected) / expected;
  }
  EXPECT_LT(chi_square, 18.5); // 4 degrees of freedom, p = 0.001
}

TEST(Sampler, FilteredDrawsKeepTheModelsLogprob) {
  const auto logits = some_logits(64);
  GenerateOptions options;
  options.temperature = 0.7;
  options.top_k = 3;
  options.top_p = 0.9;
  Sampler sampler(options, 64);
  for (std::uint32_t i = 0; i < 20; ++i) {
    const DrawnToken drawn = sampler.draw(logits, {}, 0, {5, 0, i, 0});
    double total = 0;
    for (const float logit : logits)
      total += std::exp(logit / 0.7);
    EXPECT_NEAR(
      drawn.logprob,
      logits[static_cast<std::size_t>(drawn.id)] / 0.7 - std::log(total), 1e-5);
  }
}

TEST(Sampler, SampledLogprobsAreOfTheFilteredDistribution) {
  TROUPE_NEEDS_GOLDEN();
  const auto folder = testing::golden_folder() / "samplers" / "all_filters";
  const GoldenTensors io = testing::read_golden(folder / "io.safetensors");
  GenerateOptions options
    = options_of(testing::read_golden_meta(folder).at("params"));
  options.record.logprobs = ResponseLogprobs::sampled;
  const auto vocab = static_cast<std::size_t>(io.at("logits").shape[1]);
  const auto logits = io.at("logits").floats();
  const auto previous = io.at("previous_tokens").ints();
  const auto starts = io.at("previous_cu_seqlens").ints();
  const auto& want = io.at("filtered_logprobs").values;
  Sampler sampler(options, static_cast<std::int64_t>(vocab));
  for (std::size_t row = 0; row * vocab < logits.size(); ++row) {
    const auto begin = static_cast<std::size_t>(starts[row]);
    const auto end = static_cast<std::size_t>(starts[row + 1]);
    const DrawnToken drawn
      = sampler.draw(std::span(logits).subspan(row * vocab, vocab),
                     std::span(previous).subspan(begin, end - begin), 0,
                     {1, 1, static_cast<std::uint32_t>(row), 0});
    EXPECT_NEAR(drawn.logprob,
                want[row * vocab + static_cast<std::size_t>(drawn.id)], 1e-4);
  }
}

TEST(Sampler, AMaskIsWhatTheFiltersKept) {
  const auto logits = some_logits(64);
  GenerateOptions options;
  options.temperature = 0.7;
  options.top_k = 9;
  options.top_p = 0.8;
  options.min_p = 0.05;
  options.record.logprobs = ResponseLogprobs::masked;
  Sampler sampler(options, 64);
  std::vector<float> filtered = logits;
  sampler.filter(filtered, {});
  std::vector<std::int32_t> want;
  double total = 0;
  for (std::size_t id = 0; id < filtered.size(); ++id)
    if (std::isfinite(filtered[id])) {
      want.push_back(static_cast<std::int32_t>(id));
      total += std::exp(logits[id] / 0.7);
    }
  ASSERT_LT(want.size(), 9u);
  ASSERT_GT(want.size(), 1u);
  for (std::uint32_t i = 0; i < 20; ++i) {
    const DrawnToken drawn = sampler.draw(logits, {}, 0, {5, 0, i, 0});
    EXPECT_TRUE(std::ranges::equal(sampler.kept(), want));
    EXPECT_NEAR(
      drawn.logprob,
      logits[static_cast<std::size_t>(drawn.id)] / 0.7 - std::log(total), 1e-5);
  }
}

TEST(Sampler, AMaskHasNoMoreThanTopKIdsAmongEqualLogits) {
  std::vector<float> logits(16, 1.0F);
  logits[12] = 2.0F;
  GenerateOptions options;
  options.top_k = 4;
  options.record.logprobs = ResponseLogprobs::masked;
  options.stop_ids = {1};
  options.min_new_tokens = 1;
  Sampler sampler(options, 16);
  sampler.draw(logits, {}, 1, {1, 0, 0, 0});
  EXPECT_TRUE(
    std::ranges::equal(sampler.kept(), std::vector<std::int32_t>{0, 1, 2, 12}));
  sampler.draw(logits, {}, 0, {1, 0, 0, 0});
  EXPECT_TRUE(
    std::ranges::equal(sampler.kept(), std::vector<std::int32_t>{0, 2, 3, 12}))
    << "a stop id that is not allowed yet is not kept";
}

TEST(Sampler, TemperatureZeroIsGreedyWithLogprobsAtOne) {
  const auto logits = some_logits(64);
  GenerateOptions options;
  options.temperature = 0;
  Sampler sampler(options, 64);
  const DrawnToken drawn = sampler.draw(logits, {}, 0, {});
  const auto best = std::max_element(logits.begin(), logits.end());
  EXPECT_EQ(drawn.id, best - logits.begin());
  EXPECT_NEAR(drawn.logprob, *best - log_sum_exp(logits, 1.0), 1e-6);
}

TEST(Sampler, StopIdsAreMaskedUntilMinNewTokens) {
  std::vector<float> logits(8, 0.0F);
  logits[3] = 20.0F;
  GenerateOptions options;
  options.greedy = true;
  options.stop_ids = {3};
  options.min_new_tokens = 2;
  Sampler sampler(options, 8);
  EXPECT_NE(sampler.draw(logits, {}, 0, {}).id, 3);
  EXPECT_NE(sampler.draw(logits, {}, 1, {}).id, 3);
  EXPECT_EQ(sampler.draw(logits, {}, 2, {}).id, 3);
}

TEST(Sampler, NonFiniteLogitsFailLoudly) {
  Sampler sampler({}, 4);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float removed = -std::numeric_limits<float>::infinity();
  EXPECT_THROW(sampler.draw(std::vector<float>{0, nan, 1, 2}, {}, 0, {}),
               FailureError);
  EXPECT_THROW(sampler.draw(std::vector<float>(4, removed), {}, 0, {}),
               FailureError);
}

} // namespace
} // namespace troupe::models
