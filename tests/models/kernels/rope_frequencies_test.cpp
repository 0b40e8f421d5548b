// Frequencies of rotary positions; those of models beside transformers are in
// the golden models (llama_rope_llama3, qwen2_yarn, phi4_longrope, gemma3).
#include "models/kernels/rope_frequencies.hpp"

#include <gmock/gmock.h>

#include <cmath>

namespace troupe::models {
namespace {

using ::testing::SizeIs;

constexpr std::int64_t head_dim = 64;

std::vector<float> plain() {
  return rope_frequencies({}, head_dim);
}

TEST(RopeFrequencies, ADynamicScalingIsNoneUpToTheModelsPositions) {
  EXPECT_EQ(
    rope_frequencies({.scaling = RopeScaling::dynamic, .factor = 8}, head_dim),
    plain());
}

TEST(RopeFrequencies, YarnKeepsFastOnesAndDividesSlowOnes) {
  const RopeParameters yarn{.scaling = RopeScaling::yarn,
                            .factor = 4,
                            .original_positions = 512,
                            .band_low = 1,
                            .band_high = 32};
  const auto found = rope_frequencies(yarn, head_dim);
  const auto before = plain();
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double turns = before[i] * 512 / (2 * M_PI);
    if (turns > 64) {
      EXPECT_FLOAT_EQ(found[i], before[i]) << i;
    } else if (turns < 0.5) {
      EXPECT_FLOAT_EQ(found[i], before[i] / 4) << i;
    }
    EXPECT_LE(found[i], before[i]) << i;
    EXPECT_GE(found[i], before[i] / 4) << i;
  }
  EXPECT_FLOAT_EQ(rope_attention_factor(yarn, 2048), 0.1F * std::log(4.F) + 1);
}

TEST(RopeFrequencies, LongropeDividesEachByItsShortFactor) {
  RopeParameters rope{.scaling = RopeScaling::longrope,
                      .original_positions = 1024};
  rope.short_factors.assign(head_dim / 2, 1.0);
  rope.short_factors[3] = 2.0;
  rope.long_factors.assign(head_dim / 2, 9.0);
  auto want = plain();
  want[3] /= 2;
  EXPECT_EQ(rope_frequencies(rope, head_dim), want);
  EXPECT_FLOAT_EQ(rope_attention_factor(rope, 1024), 1);
  EXPECT_FLOAT_EQ(rope_attention_factor(rope, 4096),
                  std::sqrt(1 + std::log(4.F) / std::log(1024.F)));
  rope.attention_factor = 1.5;
  EXPECT_FLOAT_EQ(rope_attention_factor(rope, 4096), 1.5F);
}

TEST(RopeFrequencies, APartOfAHeadHasThoseOfASmallerHead) {
  const auto found = rope_frequencies({.share = 0.75}, head_dim);
  EXPECT_THAT(found, SizeIs(head_dim * 3 / 4 / 2));
  EXPECT_EQ(found, rope_frequencies({}, head_dim * 3 / 4));
}

} // namespace
} // namespace troupe::models
