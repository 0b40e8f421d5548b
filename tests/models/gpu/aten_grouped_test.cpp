// ATen's grouped products beside the host's loop over one product after the
// other, on the same numbers, which bf16 has exactly; with groups that have no
// rows, and with operands that ATen does not take, for which there is the loop.
#include "models/gpu/aten_backend.hpp"
#include "models/kernels/host_backend.hpp"
#include "plans/cost/gpu_layer.hpp"

#include <gtest/gtest.h>

#include "tests/support/models/aten_counter.hpp"
#include "tests/support/models/backend_support.hpp"
#include "tests/support/models/lane_orders.hpp"
#include "tests/support/models/typed_buffers.hpp"

#include <cmath>
#include <map>
#include <string>

namespace troupe::models {
namespace {

using troupe::testing::after_kernel;
using troupe::testing::AtenCounter;
using troupe::testing::bf16_numbers;
using troupe::testing::TypedKernel;
using troupe::testing::TypedNumbers;

constexpr std::int64_t grouped_in = 24;
constexpr std::int64_t grouped_out = 16;
constexpr std::int64_t grouped_rows = 21;
constexpr std::int64_t grouped_count = 5;
constexpr std::int64_t grouped_room
  = grouped_out * grouped_in + 8; // of a weight and what follows it

GroupedShape grouped_shape() {
  static const std::vector<std::int64_t> begin{0, 0, 7, 8, 8, grouped_rows};
  return {.begin_G = begin,
          .out = grouped_out,
          .in = grouped_in,
          .operands = DType::bf16};
}

/// Returns the weights of the groups, `step` numbers from one to the next.
std::vector<ConstTypedPtr> grouped_weights(ConstTypedPtr first,
                                           std::int64_t step = grouped_room) {
  std::vector<ConstTypedPtr> found;
  for (std::int64_t g = 0; g < grouped_count; ++g)
    found.push_back(first + g * step);
  return found;
}

std::vector<float*> grouped_grads(float* first) {
  std::vector<float*> found;
  for (std::int64_t g = 0; g < grouped_count; ++g)
    found.push_back(first + g * grouped_room);
  return found;
}

AtenBackend& grouping_backend() {
  static AtenBackend backend(
    at::kCPU, {.bf16_storage = DType::bf16, .grouped_products = true});
  return backend;
}

TypedNumbers grouped_numbers(std::int64_t count, std::uint64_t seed,
                             DType type) {
  return {bf16_numbers(count, seed), type};
}

/// Returns the buffers as the host stores them.
std::vector<TypedNumbers> grouped_fp32(std::vector<TypedNumbers> buffers) {
  for (TypedNumbers& buffer : buffers)
    buffer.type = DType::f32;
  return buffers;
}

/// Expects the host's numbers, rounded to bf16 once, the same bits again (I8),
/// and as many of ATen's grouped products.
void expect_grouped(const std::vector<TypedNumbers>& buffers,
                    std::int64_t calls, const TypedKernel& kernel) {
  const auto wanted
    = after_kernel(host_backend(), grouped_fp32(buffers), kernel);
  Backend& backend = grouping_backend();
  const AtenCounter counter;
  const auto found = after_kernel(backend, buffers, kernel);
  auto by_name = counter.counts().by_name;
  EXPECT_EQ(by_name["_grouped_mm"], 2 * calls);
  for (std::size_t i = 0; i < wanted.size(); ++i)
    for (std::size_t j = 0; j < wanted[i].size(); ++j)
      ASSERT_NEAR(found[i][j], wanted[i][j],
                  std::abs(wanted[i][j]) / 256 + 2e-5F)
        << "buffer " << i << " element " << j;
  EXPECT_EQ(after_kernel(backend, buffers, kernel), found);
}

/// Rows in, weights, rows out.
std::vector<TypedNumbers> product_buffers(DType of_weights,
                                          DType of_rows = DType::bf16) {
  return {grouped_numbers(grouped_rows * grouped_in, 1, of_rows),
          grouped_numbers(grouped_count * grouped_room, 2, of_weights),
          grouped_numbers(grouped_rows * grouped_out, 3, of_rows)};
}

void compute_product(Backend& b, const std::vector<TypedPtr>& x) {
  b.grouped_product(grouped_shape(), {x[0], grouped_in}, grouped_weights(x[1]),
                    {x[2], grouped_out});
}

TEST(AtenGrouped, ProductsOfAllGroupsAreOneCall) {
  expect_grouped(product_buffers(DType::bf16), 1, compute_product);
  expect_grouped(product_buffers(DType::f32), 1, compute_product);
}

TEST(AtenGrouped, GradientsOfInputsAreOneCallForStackedWeights) {
  GroupedShape both = grouped_shape();
  both.parts = 2;
  const std::vector<TypedNumbers> buffers{
    grouped_numbers(grouped_rows * grouped_out, 1, DType::bf16),
    grouped_numbers(grouped_count * grouped_room, 2, DType::f32),
    grouped_numbers(grouped_rows * grouped_in, 3, DType::bf16)};
  expect_grouped(buffers, 1, [&](Backend& b, const auto& x) {
    b.grouped_grad_x(both, {x[0], grouped_out}, grouped_weights(x[1]),
                     {x[2], grouped_in});
  });
}

TEST(AtenGrouped, GradientsOfWeightsAreAddedInFp32) {
  std::vector<TypedNumbers> buffers{
    grouped_numbers(grouped_rows * grouped_out, 1, DType::bf16),
    grouped_numbers(grouped_rows * grouped_in, 2, DType::bf16),
    grouped_numbers(grouped_count * grouped_room, 3, DType::f32)};
  const auto add = [](Backend& b, const auto& x) {
    b.grouped_grad_w(grouped_shape(), {x[0], grouped_out}, {x[1], grouped_in},
                     grouped_grads(x[2].floats()));
  };
  for (float& x : buffers[2].values)
    x = 256; // bf16 would not hold what is added to it
  const auto wanted
    = after_kernel(host_backend(), grouped_fp32(buffers), add)[2];
  const AtenCounter counter;
  const auto found = after_kernel(grouping_backend(), buffers, add)[2];
  EXPECT_EQ(counter.counts().words(), "_grouped_mm 2, add 1");
  for (std::size_t i = 0; i < wanted.size(); ++i)
    ASSERT_NEAR(found[i], wanted[i], std::abs(wanted[i] - 256) / 256 + 1e-4F);
}

TEST(AtenGrouped, OperandsThatAtenDoesNotTakeAreMultipliedOneByOne) {
  const auto in_bf16 = product_buffers(DType::bf16);
  expect_grouped(product_buffers(DType::bf16, DType::f32), 0, compute_product);
  expect_grouped(in_bf16, 0, [](Backend& b, const auto& x) {
    auto weights = grouped_weights(x[1]);
    std::swap(weights[1], weights[2]); // no equal distances
    b.grouped_product(grouped_shape(), {x[0], grouped_in}, weights,
                      {x[2], grouped_out});
  });
  expect_grouped(in_bf16, 0, [](Backend& b, const auto& x) {
    b.grouped_product(
      grouped_shape(), {x[0], grouped_in},
      grouped_weights(x[1], grouped_room - 4), // no multiple of 16 bytes
      {x[2], grouped_out});
  });
  expect_grouped({grouped_numbers(grouped_rows * grouped_out, 1, DType::bf16),
                  grouped_numbers(grouped_count * grouped_room, 2, DType::bf16),
                  grouped_numbers(grouped_rows * grouped_in, 3, DType::bf16)},
                 0, [](Backend& b, const auto& x) {
                   GroupedShape shape = grouped_shape();
                   shape.accumulate = true;
                   b.grouped_grad_x(shape, {x[0], grouped_out},
                                    grouped_weights(x[1]), {x[2], grouped_in});
                 });
}

TEST(AtenGrouped, FrozenWeightsHaveNoGradient) {
  std::vector<TypedNumbers> buffers{
    grouped_numbers(grouped_rows * grouped_out, 1, DType::bf16),
    grouped_numbers(grouped_rows * grouped_in, 2, DType::bf16),
    grouped_numbers(grouped_count * grouped_room, 3, DType::f32)};
  expect_grouped(buffers, 0, [](Backend& b, const auto& x) {
    auto grads = grouped_grads(x[2].floats());
    grads[2] = nullptr;
    b.grouped_grad_w(grouped_shape(), {x[0], grouped_out}, {x[1], grouped_in},
                     grads);
  });
}

TEST(AtenGrouped, PlansKnowTheGpusThatMultiplyInGroups) {
  for (int generation = 6; generation < 13; ++generation)
    EXPECT_EQ(plans::multiplies_in_groups(generation),
              has_grouped_products(generation))
      << generation;
}

} // namespace
} // namespace troupe::models
