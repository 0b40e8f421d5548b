// Philox against published vectors and libtorch's; Gumbel noise against a
// scalar reference in double (I2).
#include "models/generate/gumbel.hpp"

#include <ATen/core/PhiloxRNGEngine.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace troupe::models {
namespace {

TEST(Philox, EqualsThePublishedVectors) {
  // kat_vectors of Random123: zeros, ones, digits of pi.
  EXPECT_EQ(philox4x32_10({0, 0}, {0, 0, 0, 0}),
            (PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32_10({~0U, ~0U}, {~0U, ~0U, ~0U, ~0U}),
            (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32_10({0xa4093822, 0x299f31d0},
                          {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}),
            (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, EqualsLibtorchsEngine) {
  const auto unit = [](std::uint32_t word) { return (word >> 8) * 0x1p-24F; };
  EXPECT_FLOAT_EQ(unit(philox4x32_10({42, 0}, {0, 0, 0, 0})[0]), 0.612959862F);
  EXPECT_FLOAT_EQ(unit(philox4x32_10({42, 0}, {5, 0, 7, 0})[0]), 0.0509318113F);
  at::Philox4_32 engine(42, 7, 5);
  const PhiloxBlock block = philox4x32_10({42, 0}, {5, 0, 7, 0});
  for (const std::uint32_t word : block)
    EXPECT_EQ(engine(), word);
}

TEST(Gumbel, UnitIsOpenAtBothEnds) {
  EXPECT_GT(open_unit(0), 0.0F);
  EXPECT_LT(open_unit(~0U), 1.0F);
  EXPECT_TRUE(std::isfinite(-std::log(-std::log(open_unit(0)))));
  EXPECT_TRUE(std::isfinite(-std::log(-std::log(open_unit(~0U)))));
}

double scalar_gumbel(const DrawName& name, std::uint32_t id) {
  const PhiloxBlock block
    = philox4x32_10(philox_key(name), {name.sample, name.position, id / 4, 0});
  const double u = ((block[id % 4] >> 9) + 0.5) * 0x1p-23;
  return -std::log(-std::log(u));
}

TEST(Gumbel, VectorLoopEqualsTheScalarDefinition_I2) {
  const DrawName name{1234567890123ULL, 3, 17, 41};
  for (const std::size_t size : {1, 3, 64, 255, 256, 257, 1031}) {
    std::vector<float> noise(size);
    gumbel_noise(name, 0, noise);
    for (std::uint32_t id = 0; id < size; ++id)
      ASSERT_NEAR(noise[id], scalar_gumbel(name, id), 3e-6)
        << id << " of " << size;
  }
}

TEST(Gumbel, APartOfTheVocabularyGetsTheSameBits_I2) {
  const DrawName name{7, 2, 5, 9};
  std::vector<float> whole(1003);
  gumbel_noise(name, 0, whole);
  for (const std::uint32_t first : {4U, 100U, 512U, 1000U}) {
    std::vector<float> part(whole.size() - first);
    gumbel_noise(name, first, part);
    for (std::size_t i = 0; i < part.size(); ++i)
      ASSERT_EQ(part[i], whole[first + i]) << first << "+" << i;
  }
}

TEST(Gumbel, KeysChangeEveryNumber_I2) {
  const DrawName name{7, 2, 5, 9};
  std::vector<float> base(64);
  gumbel_noise(name, 0, base);
  const DrawName others[] = {{8, 2, 5, 9},
                             {7, 3, 5, 9},
                             {7, 2, 6, 9},
                             {7, 2, 5, 10},
                             {7 + (1ULL << 32), 2, 5, 9}};
  for (const DrawName& other : others) {
    std::vector<float> noise(64);
    gumbel_noise(other, 0, noise);
    EXPECT_NE(noise, base);
  }
}

TEST(Gumbel, HasTheMomentsOfTheGumbelDistribution) {
  std::vector<float> noise(1 << 20);
  gumbel_noise({3, 0, 0, 0}, 0, noise);
  double sum = 0;
  double squares = 0;
  for (const float g : noise) {
    sum += g;
    squares += double{g} * g;
  }
  const double mean = sum / static_cast<double>(noise.size());
  const double variance
    = squares / static_cast<double>(noise.size()) - mean * mean;
  EXPECT_NEAR(mean, 0.5772156649, 0.005);     // Euler's constant
  EXPECT_NEAR(variance, 1.6449340668, 0.015); // pi^2 / 6
}

} // namespace
} // namespace troupe::models
