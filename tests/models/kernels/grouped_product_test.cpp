// Products of groups beside sums in double, on the backend under test.
#include "models/kernels/grouped_product.hpp"

#include <gtest/gtest.h>

#include "tests/support/models/backend_support.hpp"
#include "tests/support/models/lane_orders.hpp"
#include "tests/support/models/typed_buffers.hpp"

#include <cmath>

namespace troupe::models {
namespace {

using troupe::testing::after_kernel;
using troupe::testing::bf16_numbers;
using troupe::testing::TypedNumbers;

constexpr std::int64_t few_in = 7;
constexpr std::int64_t few_out = 6;
constexpr std::int64_t few_size = few_out * few_in;
constexpr std::int64_t few_rows = 12;

GroupedShape few_groups() {
  static const std::vector<std::int64_t> begin{0, 5, 5, 6, few_rows};
  return {.begin_G = begin, .out = few_out, .in = few_in};
}

std::int64_t few_group(std::int64_t row) {
  std::int64_t group = 0;
  while (row >= few_groups().begin_G[static_cast<std::size_t>(group) + 1])
    ++group;
  return group;
}

/// Numbers of rows in, rows out and weights.
struct FewNumbers {
  std::vector<float> x = bf16_numbers(few_rows * few_in, 1);
  std::vector<float> y = bf16_numbers(few_rows * few_out, 2);
  std::vector<float> w = bf16_numbers(4 * few_size, 3);

  std::vector<TypedNumbers> buffers() const {
    return {{x}, {y}, {w}};
  }
};

std::vector<ConstTypedPtr> few_weights(ConstTypedPtr first) {
  return {first, first + few_size, first + 2 * few_size, first + 3 * few_size};
}

template <class At>
void expect_few_sums(const std::vector<float>& found, std::int64_t columns,
                     const At& wanted) {
  for (std::int64_t i = 0; i < std::ssize(found); ++i)
    ASSERT_NEAR(found[static_cast<std::size_t>(i)],
                wanted(i / columns, i % columns), 1e-4)
      << i;
}

TEST(GroupedProduct, GivesEachGroupsRowsTheProductWithItsWeight) {
  const FewNumbers n;
  const auto after
    = after_kernel(troupe::testing::backend_under_test(), n.buffers(),
                   [](Backend& b, const auto& x) {
                     b.grouped_product(few_groups(), {x[0], few_in},
                                       few_weights(x[2]), {x[1], few_out});
                   });
  expect_few_sums(after[1], few_out, [&](std::int64_t row, std::int64_t o) {
    double sum = 0;
    for (std::int64_t i = 0; i < few_in; ++i)
      sum += double{n.x[static_cast<std::size_t>(row * few_in + i)]}
             * n.w[static_cast<std::size_t>(few_group(row) * few_size
                                            + o * few_in + i)];
    return sum;
  });
}

TEST(GroupedProduct, GradientsOfInputsAreOverAllParts) {
  const FewNumbers n;
  for (const bool accumulate : {false, true}) {
    GroupedShape shape = few_groups();
    shape.parts = 3;
    shape.accumulate = accumulate;
    const auto after
      = after_kernel(troupe::testing::backend_under_test(), n.buffers(),
                     [&](Backend& b, const auto& x) {
                       b.grouped_grad_x(shape, {x[1], few_out},
                                        few_weights(x[2]), {x[0], few_in});
                     });
    expect_few_sums(after[0], few_in, [&](std::int64_t row, std::int64_t i) {
      double sum
        = accumulate ? n.x[static_cast<std::size_t>(row * few_in + i)] : 0.0F;
      for (std::int64_t o = 0; o < few_out; ++o)
        sum += double{n.y[static_cast<std::size_t>(row * few_out + o)]}
               * n.w[static_cast<std::size_t>(few_group(row) * few_size
                                              + o * few_in + i)];
      return sum;
    });
  }
}

TEST(GroupedProduct, GradientsOfWeightsAreAddedButForFrozenOnes) {
  const FewNumbers n;
  GroupedShape shape = few_groups();
  shape.parts = 2;
  const auto after = after_kernel(
    troupe::testing::backend_under_test(), n.buffers(),
    [&](Backend& b, const auto& x) {
      float* first = x[2].floats();
      const std::vector<float*> grads{first, first + few_size, nullptr,
                                      first + 3 * few_size};
      b.grouped_grad_w(shape, {x[1], few_out}, {x[0], few_in}, grads);
    });
  expect_few_sums(after[2], few_in, [&](std::int64_t stacked, std::int64_t i) {
    const std::int64_t group = stacked / few_out;
    const std::int64_t o = stacked % few_out;
    double sum = n.w[static_cast<std::size_t>(stacked * few_in + i)];
    for (std::int64_t row = 0; row < few_rows && group != 2; ++row)
      if (few_group(row) == group)
        sum += double{n.y[static_cast<std::size_t>(row * few_out + o)]}
               * n.x[static_cast<std::size_t>(row * few_in + i)];
    return sum;
  });
}

} // namespace
} // namespace troupe::models
