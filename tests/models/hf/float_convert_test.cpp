#include "config/base/float16.hpp"
#include "models/hf/float_convert.hpp"

#include <gmock/gmock.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

namespace troupe::models {
namespace {

TEST(FloatConvert, RoundTripsEveryBf16AndF16) {
  for (std::uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float wide_bf16 = bf16_to_f32(half);
    if (std::isnan(wide_bf16)) {
      EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(wide_bf16)))) << bits;
    } else {
      EXPECT_EQ(f32_to_bf16(wide_bf16), half);
    }
    const float wide_f16 = f16_to_f32(half);
    if (std::isnan(wide_f16)) {
      EXPECT_TRUE(std::isnan(f16_to_f32(f32_to_f16(wide_f16)))) << bits;
    } else {
      EXPECT_EQ(f32_to_f16(wide_f16), half);
    }
  }
}

TEST(FloatConvert, RoundsToNearestWithTiesToEven) {
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3F808000U)), 0x3F80); // tie down
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3F818000U)), 0x3F82); // tie up
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3F808001U)), 0x3F81);
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x7F7FFFFFU)), 0x7F80); // to inf
  EXPECT_EQ(f32_to_f16(1.0F + 0x1p-11F), 0x3C00);
  EXPECT_EQ(f32_to_f16(1.0F + 3 * 0x1p-11F), 0x3C02);
  EXPECT_EQ(f32_to_f16(65519.0F), 0x7BFF);
  EXPECT_EQ(f32_to_f16(65520.0F), 0x7C00);
  EXPECT_EQ(f32_to_f16(0x1p-24F), 0x0001); // smallest subnormal
  EXPECT_EQ(f32_to_f16(0x1p-25F), 0x0000); // tie to even
  EXPECT_EQ(f32_to_f16(-std::numeric_limits<float>::infinity()), 0xFC00);
}

TEST(FloatConvert, AgreesElementByElementAtAnyAlignmentAndLength) {
  for (const std::size_t count : {0UL, 1UL, 63UL, 64UL, 65UL, 1000UL}) {
    std::vector<float> values(count);
    for (std::size_t i = 0; i < count; ++i)
      values[i] = std::sin(static_cast<float>(i)) * 1e3F;
    std::vector<std::byte> target(count * 2 + 1);
    const auto unaligned = std::span(target).subspan(1);
    convert(DType::f32, std::as_bytes(std::span(values)), DType::bf16,
            unaligned);
    std::vector<float> back(count);
    convert(DType::bf16, unaligned, DType::f32,
            std::as_writable_bytes(std::span(back)));
    for (std::size_t i = 0; i < count; ++i)
      EXPECT_EQ(back[i], bf16_to_f32(f32_to_bf16(values[i])));
  }
}

} // namespace
} // namespace troupe::models
