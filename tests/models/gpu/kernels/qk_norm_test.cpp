// Norms of heads of GPU kernels, run on the host, against the CPU's.
#include "models/gpu/kernels/add_rows.hpp"
#include "models/gpu/kernels/qk_norm.hpp"
#include "models/kernels/qk_norm.hpp"

#include <gtest/gtest.h>

#include "tests/support/models/lane_orders.hpp"

namespace troupe::models::gpu {
namespace {

using troupe::testing::bf16_numbers;
using troupe::testing::expect_near;
using troupe::testing::in_every_order;
using troupe::testing::read_back;
using troupe::testing::stored_as;

constexpr float head_eps = 1e-5F;

struct HeadCase {
  HeadRows shape;
  float plus = 0;

  QkNormShape of_cpu() const {
    return {shape.rows,  shape.stride,
            shape.heads, shape.dim,
            head_eps,    plus == 1 ? NormKind::rms_one_plus : NormKind::rms};
  }
  std::int64_t size() const {
    return shape.rows * shape.stride;
  }
};

// Heads that fill no block, several blocks, and several chunks of one.
const HeadCase head_cases[] = {{{1, 8, 1, 8}, 0},
                               {{5, 70, 3, 20}, 1},
                               {{37, 512, 3, 128}, 0},
                               {{300, 32, 2, 16}, 0}};

/// Contents of the buffers after a kernel, one after the other.
using HeadNumbers = std::vector<std::vector<float>>;

std::vector<float> joined_numbers(const HeadNumbers& parts) {
  std::vector<float> all;
  for (const auto& part : parts)
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

/// Returns normed heads, and the raw ones.
template <class T>
HeadNumbers normed_heads(const HeadCase& c) {
  const auto weight = bf16_numbers(c.shape.dim, 3);
  HeadNumbers found;
  in_every_order([&](LaneOrder order) {
    auto x = stored_as<T>(bf16_numbers(c.size(), 1));
    std::vector<T> raw(static_cast<std::size_t>(c.shape.count() * c.shape.dim));
    run_on_host(HeadNorm<T>{c.shape, weight.data(), x.data(), raw.data(),
                            head_eps, c.plus},
                HeadNorm<T>::blocks(c.shape.count()), order);
    found = {read_back(x), read_back(raw)};
    return joined_numbers(found);
  });
  return found;
}

/// Returns the gradients of raw heads and of the weight.
template <class T>
HeadNumbers head_gradients(const HeadCase& c) {
  using Kernel = HeadNormBackward<T>;
  const auto weight = bf16_numbers(c.shape.dim, 3);
  const auto raw = stored_as<T>(bf16_numbers(c.shape.count() * c.shape.dim, 1));
  const std::int64_t chunks = Kernel::chunks(c.shape.count());
  HeadNumbers found;
  in_every_order([&](LaneOrder order) {
    auto dx = stored_as<T>(bf16_numbers(c.size(), 2));
    std::vector<float> partial(static_cast<std::size_t>(chunks * c.shape.dim),
                               7.0F);
    std::vector<float> d_weight(static_cast<std::size_t>(c.shape.dim), 0.5F);
    run_on_host(Kernel{c.shape, weight.data(), raw.data(), dx.data(),
                       partial.data(), head_eps, c.plus},
                Kernel::blocks(c.shape.count()), order);
    run_on_host(AddRows{partial.data(), d_weight.data(), chunks, c.shape.dim},
                AddRows::blocks(c.shape.dim), order);
    found = {read_back(dx), d_weight};
    return joined_numbers(found);
  });
  return found;
}

TEST(GpuHeadNorm, EqualsTheCpus) {
  for (const HeadCase& c : head_cases) {
    auto x = bf16_numbers(c.size(), 1);
    std::vector<float> raw(
      static_cast<std::size_t>(c.shape.count() * c.shape.dim));
    qk_norm(c.of_cpu(), bf16_numbers(c.shape.dim, 3).data(), x.data(),
            raw.data());
    const HeadNumbers in_fp32 = normed_heads<float>(c);
    expect_near(in_fp32[0], x, 2e-6F);
    EXPECT_EQ(in_fp32[1], raw);
    const HeadNumbers in_bf16 = normed_heads<Bf16>(c);
    expect_near(in_bf16[0], x, 1.0F / 256);
    EXPECT_EQ(in_bf16[1], raw);
  }
}

TEST(GpuHeadNorm, GradientsEqualTheCpus) {
  for (const HeadCase& c : head_cases) {
    auto dx = bf16_numbers(c.size(), 2);
    std::vector<float> d_weight(static_cast<std::size_t>(c.shape.dim), 0.5F);
    Workspace workspace;
    qk_norm_backward(c.of_cpu(), bf16_numbers(c.shape.dim, 3).data(),
                     bf16_numbers(c.shape.count() * c.shape.dim, 1).data(),
                     dx.data(), d_weight.data(), workspace);
    const HeadNumbers in_fp32 = head_gradients<float>(c);
    expect_near(in_fp32[0], dx, 1e-5F, 2e-6F);
    expect_near(in_fp32[1], d_weight, 1e-5F, 2e-5F);
    const HeadNumbers in_bf16 = head_gradients<Bf16>(c);
    expect_near(in_bf16[0], dx, 1.0F / 256, 2e-5F);
    expect_near(in_bf16[1], d_weight, 1e-5F, 2e-5F);
  }
}

} // namespace
} // namespace troupe::models::gpu
