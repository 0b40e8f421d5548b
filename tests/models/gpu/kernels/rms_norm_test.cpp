// Residual and RMSNorm of GPU kernels, run on the host, against the CPU's.
#include "models/gpu/kernels/add_rows.hpp"
#include "models/gpu/kernels/rms_norm.hpp"
#include "models/gpu/kernels/rms_norm_backward.hpp"
#include "models/kernels/norm.hpp"

#include <gtest/gtest.h>

#include "tests/support/models/lane_orders.hpp"

namespace troupe::models::gpu {
namespace {

using troupe::testing::bf16_numbers;
using troupe::testing::expect_near;
using troupe::testing::in_every_order;
using troupe::testing::read_back;
using troupe::testing::stored_as;

constexpr float norm_eps = 1e-5F;

struct NormSize {
  std::int64_t rows;
  std::int64_t width;
  float plus;
};

constexpr NormSize norm_sizes[]
  = {{1, 1, 0}, {1, 64, 0}, {3, 257, 1}, {33, 96, 0}, {2, 1000, 1}};

NormShape reference_shape(const NormSize& size) {
  return {size.rows, size.width, norm_eps,
          size.plus == 1 ? NormKind::rms_one_plus : NormKind::rms};
}

/// Sums of x and the residual, their norm, and rstd.
struct Normed {
  std::vector<float> x;
  std::vector<float> y;
  std::vector<float> rstd;
};

template <class T>
Normed norm_of(const NormSize& size, bool with_residual) {
  const std::int64_t count = size.rows * size.width;
  const auto weight = bf16_numbers(size.width, 3);
  const auto residual = stored_as<T>(bf16_numbers(count, 2));
  Normed out;
  const auto all = in_every_order([&](LaneOrder order) {
    auto x = stored_as<T>(bf16_numbers(count, 1));
    std::vector<T> y(x.size());
    std::vector<float> rstd(static_cast<std::size_t>(size.rows));
    run_on_host(RmsNorm<T>{x.data(), with_residual ? residual.data() : nullptr,
                           weight.data(), y.data(), rstd.data(), size.width,
                           norm_eps, size.plus},
                RmsNorm<T>::blocks(size.rows), order);
    out = {read_back(x), read_back(y), rstd};
    auto joined = out.x;
    joined.insert(joined.end(), out.y.begin(), out.y.end());
    joined.insert(joined.end(), rstd.begin(), rstd.end());
    return joined;
  });
  return out;
}

/// Returns the CPU's norm of what the kernel left in x.
Normed norm_wanted(const NormSize& size, const std::vector<float>& x) {
  const auto weight = bf16_numbers(size.width, 3);
  Normed want{x, std::vector<float>(x.size()),
              std::vector<float>(static_cast<std::size_t>(size.rows))};
  norm(reference_shape(size), x.data(), {weight.data(), nullptr}, want.y.data(),
       want.rstd.data());
  return want;
}

TEST(GpuRmsNorm, EqualsTheCpusNormOfTheSum) {
  for (const NormSize& size : norm_sizes)
    for (const bool with_residual : {false, true}) {
      const Normed got = norm_of<float>(size, with_residual);
      auto sums = bf16_numbers(size.rows * size.width, 1);
      const auto residual = bf16_numbers(size.rows * size.width, 2);
      for (std::size_t i = 0; with_residual && i < sums.size(); ++i)
        sums[i] += residual[i];
      EXPECT_EQ(got.x, sums);
      const Normed want = norm_wanted(size, sums);
      expect_near(got.y, want.y, 2e-6F);
      expect_near(got.rstd, want.rstd, 2e-6F);
    }
}

TEST(GpuRmsNorm, InBf16IsTheFp32NormOfTheStoredSumRounded) {
  for (const NormSize& size : norm_sizes) {
    const Normed got = norm_of<Bf16>(size, /*with_residual=*/true);
    expect_near(got.x, norm_of<float>(size, /*with_residual=*/true).x, 0x1p-8F);
    const Normed want = norm_wanted(size, got.x);
    expect_near(got.y, want.y, 0x1p-8F);
    expect_near(got.rstd, want.rstd, 2e-6F);
  }
}

struct NormGradient {
  std::vector<float> dx;
  std::vector<float> d_weight;
};

template <class T>
NormGradient gradient_of(const NormSize& size, const std::vector<float>& rstd) {
  const std::int64_t count = size.rows * size.width;
  const auto weight = bf16_numbers(size.width, 3);
  const auto x = stored_as<T>(bf16_numbers(count, 1));
  const auto dy = stored_as<T>(bf16_numbers(count, 4));
  const std::int64_t chunks = RmsNormBackward<T>::blocks(size.rows);
  NormGradient out;
  in_every_order([&](LaneOrder order) {
    auto dx = stored_as<T>(bf16_numbers(count, 5));
    std::vector<float> partial(static_cast<std::size_t>(chunks * size.width),
                               -99.0F); // whatever was there before
    run_on_host(RmsNormBackward<T>{dy.data(), x.data(), weight.data(),
                                   rstd.data(), dx.data(), partial.data(),
                                   size.rows, size.width, size.plus},
                chunks, order);
    auto d_weight = bf16_numbers(size.width, 6);
    run_on_host(AddRows{partial.data(), d_weight.data(), chunks, size.width},
                AddRows::blocks(size.width), order);
    out = {read_back(dx), d_weight};
    auto joined = out.dx;
    joined.insert(joined.end(), d_weight.begin(), d_weight.end());
    return joined;
  });
  return out;
}

NormGradient gradient_wanted(const NormSize& size,
                             const std::vector<float>& rstd) {
  const std::int64_t count = size.rows * size.width;
  const auto weight = bf16_numbers(size.width, 3);
  NormGradient want{bf16_numbers(count, 5), bf16_numbers(size.width, 6)};
  Workspace workspace;
  norm_backward(reference_shape(size), bf16_numbers(count, 4).data(),
                bf16_numbers(count, 1).data(), {weight.data(), nullptr},
                rstd.data(), want.dx.data(), {want.d_weight.data(), nullptr},
                workspace);
  return want;
}

TEST(GpuRmsNormBackward, AddsTheCpusGradients) {
  for (const NormSize& size : norm_sizes) {
    const auto rstd
      = norm_wanted(size, bf16_numbers(size.rows * size.width, 1)).rstd;
    const NormGradient want = gradient_wanted(size, rstd);
    const NormGradient got = gradient_of<float>(size, rstd);
    expect_near(got.dx, want.dx, 1e-5F, 1e-5F);
    expect_near(got.d_weight, want.d_weight, 1e-5F, 1e-5F);
  }
}

TEST(GpuRmsNormBackward, InBf16RoundsTheFp32GradientOnce) {
  for (const NormSize& size : norm_sizes) {
    const auto rstd
      = norm_wanted(size, bf16_numbers(size.rows * size.width, 1)).rstd;
    const NormGradient want = gradient_of<float>(size, rstd);
    const NormGradient got = gradient_of<Bf16>(size, rstd);
    EXPECT_EQ(got.dx, read_back(stored_as<Bf16>(want.dx)));
    EXPECT_EQ(got.d_weight, want.d_weight);
  }
}

} // namespace
} // namespace troupe::models::gpu
