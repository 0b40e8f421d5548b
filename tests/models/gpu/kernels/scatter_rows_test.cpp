// Listed rows of GPU kernels, run on the host, against the CPU's.
#include "models/gpu/kernels/scatter_rows.hpp"
#include "models/kernels/elementwise.hpp"

#include <gtest/gtest.h>

#include "tests/support/models/lane_orders.hpp"

namespace troupe::models::gpu {
namespace {

using troupe::testing::bf16_numbers;
using troupe::testing::expect_near;
using troupe::testing::in_every_order;
using troupe::testing::read_back;
using troupe::testing::stored_as;

constexpr std::int64_t scattered_rows = 7;

// Rows 0, 4 and 3 are added to, by one, three and two of the list.
const std::vector<std::int64_t> scattered_to{4, 0, 3, 4, 4, 3};
const std::vector<std::int64_t> scattered_lists{0, 1, 4, 6, 0, 4, 3,
                                                1, 0, 3, 4, 2, 5};
const std::vector<float> scattered_weights{0.5F, -1.25F, 3.0F,
                                           0.1F, 0.7F,   1e-3F};

template <class From, class To>
std::vector<float> scattered(std::int64_t width, const float* weight_N) {
  const auto count = static_cast<std::int64_t>(scattered_to.size());
  return in_every_order([&](LaneOrder order) {
    const auto from = stored_as<From>(bf16_numbers(count * width, 1));
    auto to = stored_as<To>(bf16_numbers(scattered_rows * width, 2));
    run_on_host(ScatterRows<From, To>{from.data(), to.data(),
                                      scattered_lists.data(), weight_N, 0.5F, 3,
                                      width},
                3, order);
    return read_back(to);
  });
}

std::vector<float> scattered_by_cpu(std::int64_t width,
                                    std::span<const float> weight_N) {
  auto to = bf16_numbers(scattered_rows * width, 2);
  const auto from
    = bf16_numbers(static_cast<std::int64_t>(scattered_to.size()) * width, 1);
  scatter_rows({scattered_to, width, 0.5F, weight_N}, from.data(), to.data());
  return to;
}

TEST(GpuScatterRows, AddsInTheOrderOfTheListAndRoundsOnce) {
  for (const std::int64_t width : {1, 37, 256, 700})
    for (const bool weighted : {true, false}) {
      const float* weight_N = weighted ? scattered_weights.data() : nullptr;
      const auto want = scattered_by_cpu(
        width, weighted ? scattered_weights : std::vector<float>{});
      expect_near(scattered<float, float>(width, weight_N), want, 1e-6F, 1e-6F);
      expect_near(scattered<Bf16, float>(width, weight_N), want, 1e-6F, 1e-6F);
      expect_near(scattered<Bf16, Bf16>(width, weight_N), want, 1.0F / 256,
                  1e-6F);
    }
}

} // namespace
} // namespace troupe::models::gpu
