// Tokens drawn by the GPU's kernel, run on the host, against the CPU's sampler.
#include "models/generate/device_draw.hpp"
#include "models/generate/sampler.hpp"
#include "models/gpu/kernels/draw_token.hpp"

#include <gtest/gtest.h>

#include "tests/support/models/lane_orders.hpp"

#include <cmath>
#include <limits>
#include <vector>

namespace troupe::models::gpu {
namespace {

using troupe::testing::bf16_numbers;
using troupe::testing::stored_as;

/// Rows of logits of which each is drawn from under a name of its own.
struct DrawCase {
  GenerateOptions options;
  std::int64_t rows = 150;
  std::int64_t vocab = 1001;
  bool tied = false; ///< logits in steps of a quarter

  std::vector<float> logits() const {
    auto numbers = bf16_numbers(rows * vocab, std::uint64_t(vocab), 2.5F);
    for (float& x : numbers)
      x = tied ? std::round(4 * x) / 4 : x;
    return numbers;
  }
};

DrawName name_of(std::int64_t row) {
  return {.seed = 0x1234567890ULL + std::uint64_t(row) / 7,
          .step = 3,
          .sample = std::uint32_t(row),
          .position = std::uint32_t(row * 5)};
}

DrawOptions options_of(const GenerateOptions& options) {
  DrawOptions out;
  out.greedy = options.greedy || options.temperature <= 0;
  out.temperature = options.temperature > 0 ? float(options.temperature) : 1.0F;
  out.top_k = std::uint32_t(options.top_k);
  out.top_p = options.top_p;
  if (options.min_p > 0)
    out.log_min_p = std::log(options.min_p);
  out.filtered_logprobs = options.record.logprobs == ResponseLogprobs::sampled;
  return out;
}

template <class T>
std::vector<DrawnToken> drawn_of(const DrawCase& what, LaneOrder order) {
  const auto logits = stored_as<T>(what.logits());
  std::vector<DrawKey> keys;
  for (std::int64_t row = 0; row < what.rows; ++row)
    keys.push_back(draw_key(name_of(row)));
  std::vector<DrawnToken> drawn(keys.size());
  run_on_host(DrawToken<T>{logits.data(), keys.data(), drawn.data(),
                           std::uint32_t(what.vocab), options_of(what.options)},
              DrawToken<T>::blocks(what.rows), order);
  return drawn;
}

/// Returns by how much the noise and logit of one id exceed another's.
double lead(const DrawCase& what, std::span<const float> logits,
            std::int64_t row, std::int32_t first, std::int32_t second) {
  std::vector<float> noise(std::size_t(what.vocab));
  gumbel_noise(name_of(row), 0, noise);
  const auto score = [&](std::int32_t id) {
    return logits[std::size_t(id)] / float(what.options.temperature)
           + noise[std::size_t(id)];
  };
  return std::abs(double{score(first)} - double{score(second)});
}

void expect_the_samplers_draws(const DrawCase& what) {
  const auto drawn = drawn_of<float>(what, LaneOrder::forward());
  const auto logits = what.logits();
  Sampler sampler(what.options, what.vocab);
  int other = 0; // the CPU's logarithms differ in their last bits
  for (std::int64_t row = 0; row < what.rows; ++row) {
    const std::span<const float> row_V = std::span(logits).subspan(
      std::size_t(row * what.vocab), std::size_t(what.vocab));
    const DrawnToken want = sampler.draw(row_V, {}, 0, name_of(row));
    const DrawnToken got = drawn[std::size_t(row)];
    if (got.id != want.id) {
      ASSERT_LT(lead(what, row_V, row, got.id, want.id), 1e-5) << "row " << row;
      ++other;
      continue;
    }
    ASSERT_NEAR(got.logprob, want.logprob, 1e-5) << "row " << row;
  }
  EXPECT_LE(other, 1);
}

GenerateOptions filtered(std::int64_t top_k, double top_p, double min_p) {
  GenerateOptions options;
  options.temperature = 0.8;
  options.top_k = top_k;
  options.top_p = top_p;
  options.min_p = min_p;
  return options;
}

TEST(GpuDrawToken, IsTheSamplersOverThousandsOfNames_I2) {
  DrawCase plain{.rows = 2000};
  expect_the_samplers_draws(plain);
  plain.options.temperature = 0.6;
  expect_the_samplers_draws(plain);
  expect_the_samplers_draws({.rows = 20, .vocab = 1});
  expect_the_samplers_draws({.rows = 200, .vocab = 6});
  expect_the_samplers_draws({.rows = 30, .vocab = 5000});
}

TEST(GpuDrawToken, AfterFiltersIsTheSamplersWithItsTies_I2) {
  for (const bool tied : {false, true})
    for (GenerateOptions options :
         {filtered(50, 1, 0), filtered(1, 1, 0), filtered(0, 0.9, 0),
          filtered(0, 0.317, 0), filtered(0, 1, 0.05), filtered(40, 0.831, 0),
          filtered(2000, 1, 0), filtered(60, 0.9, 0.07)}) {
      options.record.logprobs = ResponseLogprobs::unfiltered;
      expect_the_samplers_draws({.options = options, .tied = tied});
      // the sampler's own log-probability tells what was kept, to one token
      options.record.logprobs = ResponseLogprobs::sampled;
      expect_the_samplers_draws({.options = options, .tied = tied});
    }
}

TEST(GpuDrawToken, GreedyTakesTheFirstOfTheLargest) {
  GenerateOptions greedy;
  greedy.greedy = true;
  expect_the_samplers_draws({.options = greedy, .tied = true});
  greedy.temperature = 0;
  greedy.top_k = 5;
  expect_the_samplers_draws({.options = greedy, .rows = 50, .tied = true});
}

TEST(GpuDrawToken, DoesNotDependOnTheOrderOfLanes) {
  DrawCase what{.options = filtered(60, 0.9, 0.01), .rows = 3, .tied = true};
  what.options.record.logprobs = ResponseLogprobs::sampled;
  troupe::testing::in_every_order(
    [&](LaneOrder order) { return drawn_of<float>(what, order); });
  // logits that bf16 can hold are the same logits
  const auto wide = drawn_of<float>(what, LaneOrder::forward());
  const auto narrow = drawn_of<Bf16>(what, LaneOrder::forward());
  for (std::size_t row = 0; row < wide.size(); ++row)
    EXPECT_EQ(wide[row].id, narrow[row].id);
}

TEST(GpuDrawToken, LogitsThatAreNotFiniteHaveNoToken) {
  constexpr float inf = std::numeric_limits<float>::infinity();
  const DrawKey key{{1, 2}, 3, 4};
  const auto id_of = [&](std::vector<float> logits) {
    DrawnToken drawn{};
    run_on_host(DrawToken<float>{logits.data(), &key, &drawn,
                                 std::uint32_t(logits.size()),
                                 DrawOptions{.top_p = 0.9}},
                1);
    return drawn.id;
  };
  EXPECT_EQ(id_of({0, std::nanf(""), 1}), -1);
  EXPECT_EQ(id_of({0, inf, 1}), -1);
  EXPECT_EQ(id_of({-inf, -inf}), -1);
  EXPECT_EQ(id_of({-inf, 0, -inf}), 1);
}

} // namespace
} // namespace troupe::models::gpu
