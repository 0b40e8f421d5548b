// Kernels of experts on a GPU: their choice, its gradient, the order of tokens,
// units and sums. Built with CUDA, and for pretended GPUs.
#include "models/gpu/kernels/choose_experts.hpp"
#include "models/gpu/kernels/expert_unit_backward.hpp"
#include "models/gpu/kernels/join_experts.hpp"
#include "models/gpu/kernels/load_excess.hpp"
#include "models/gpu/kernels/route_backward.hpp"
#include "models/gpu/kernels/sort_experts.hpp"
#include "models/transformer/router.hpp"

#include <gtest/gtest.h>

#include "tests/support/cuda/kernels_on_gpu.hpp"
#include "tests/support/models/expert_cases.hpp"
#include "tests/support/models/lane_orders.hpp"

#include <cstdint>
#include <vector>

namespace troupe::models::gpu {
namespace {

using troupe::testing::bf16_numbers;
using troupe::testing::expect_the_hosts_bits;
using troupe::testing::GpuKernels;
using troupe::testing::KernelMemory;
using troupe::testing::router_rules;
using troupe::testing::skewed_experts;

constexpr std::int64_t routed_tokens = 9, routed_experts = 168, routed_to = 5;

RouterShape routed_shape(const RouterRule& rule) {
  return {.tokens = routed_tokens,
          .experts = routed_experts,
          .chosen = routed_to,
          .rule = rule};
}

void expect_choices(const RouterShape& shape) {
  expect_the_hosts_bits(shape.tokens, [&](KernelMemory& memory) {
    const float* logits
      = memory.numbers<float>(shape.tokens * shape.experts, 1);
    const float* correction = memory.numbers<float>(shape.experts, 5, 0.2F);
    return ChooseExperts{logits,
                         shape.rule.corrected ? correction : nullptr,
                         choice_rule(shape.rule),
                         shape.experts,
                         shape.chosen,
                         memory.zeros<std::int32_t>(shape.slots()),
                         memory.zeros<float>(shape.slots()),
                         memory.zeros<float>(shape.tokens * shape.experts)};
  });
}

void expect_gradients(const RouterShape& shape) {
  const auto logits = bf16_numbers(shape.tokens * shape.experts, 1);
  const auto correction = bf16_numbers(shape.experts, 5, 0.2F);
  const Routing routing = route(
    shape, logits.data(), shape.rule.corrected ? correction.data() : nullptr);
  expect_the_hosts_bits(shape.tokens, [&](KernelMemory& memory) {
    return RouteBackward{memory.put(routing.chosen_TK),
                         memory.put(routing.slots_of_tokens()),
                         memory.put(routing.weight_S),
                         memory.numbers<float>(shape.slots(), 2),
                         shape.needs_scores() ? memory.put(routing.scores_TE)
                                              : nullptr,
                         memory.zeros<float>(shape.tokens * shape.experts),
                         choice_rule(shape.rule),
                         shape.experts,
                         shape.chosen};
  });
}

TEST_F(GpuKernels, ChoicesOfExpertsAndTheirGradientsHaveTheHostsBits) {
  for (const RouterRule& rule : router_rules()) {
    expect_choices(routed_shape(rule));
    expect_gradients(routed_shape(rule));
  }
}

TEST_F(GpuKernels, SortedExpertsHaveTheHostsBits) {
  constexpr std::int64_t tokens = 700, chosen = 3, slots = tokens * chosen;
  constexpr std::int64_t experts = 128, rows_at_once = 300;
  const auto of_tokens = skewed_experts(slots, experts);
  expect_the_hosts_bits(experts, [&](KernelMemory& memory) {
    return SortExperts{
      memory.put(of_tokens),
      memory.numbers<float>(slots, 1),
      slots,
      experts,
      chosen,
      rows_at_once,
      memory.zeros<std::int64_t>(slots),
      memory.zeros<std::int32_t>(slots),
      memory.zeros<float>(slots),
      memory.zeros<std::int32_t>(pieces_of(slots, rows_at_once) * experts)};
  });
  std::vector<std::int64_t> copies;
  for (std::int64_t token = 0; token < tokens; ++token)
    copies.push_back(1 + token % 4);
  expect_the_hosts_bits(1, [&](KernelMemory& memory) {
    return LoadExcess{memory.put(of_tokens),
                      memory.put(copies),
                      slots,
                      experts,
                      chosen,
                      memory.numbers<float>(experts, 1)};
  });
}

template <class Unit, class T>
void expect_unit_gradients() {
  constexpr std::int64_t rows = 5, width = 700, hidden = 300;
  expect_the_hosts_bits(rows, [&](KernelMemory& memory) {
    return ExpertUnitBackward<Unit, T>{
      memory.numbers<T>(2 * rows * width, 1, 3),
      memory.numbers<T>(rows * width, 2),
      memory.numbers<T>(rows * hidden, 3),
      memory.numbers<float>(rows, 4),
      memory.zeros<float>(rows),
      width,
      hidden};
  });
}

TEST_F(GpuKernels, GradientsOfExpertsUnitsHaveTheHostsBits) {
  expect_unit_gradients<Silu, float>();
  expect_unit_gradients<Silu, Bf16>();
  expect_unit_gradients<Gelu, float>();
  expect_unit_gradients<Gelu, Bf16>();
  expect_unit_gradients<GeluTanh, float>();
  expect_unit_gradients<GeluTanh, Bf16>();
}

// The rows of a piece of slots, which has none of some tokens.
template <class From, class To>
void expect_joined_experts() {
  constexpr std::int64_t width = 700, begin = 5, end = 30;
  const RouterShape shape = routed_shape({});
  const auto logits = bf16_numbers(shape.tokens * shape.experts, 4);
  const Routing routing = route(shape, logits.data(), nullptr);
  for (const bool weighted : {true, false})
    expect_the_hosts_bits(shape.tokens, [&](KernelMemory& memory) {
      return JoinExperts<From, To>{
        memory.numbers<From>((end - begin) * width, 1),
        memory.numbers<To>(shape.tokens * width, 2),
        memory.put(routing.slots_of_tokens()),
        weighted ? memory.put(routing.weight_S) : nullptr,
        begin,
        end,
        shape.chosen,
        width};
    });
}

TEST_F(GpuKernels, JoinedExpertsHaveTheHostsBits) {
  expect_joined_experts<float, float>();
  expect_joined_experts<Bf16, float>();
  expect_joined_experts<Bf16, Bf16>();
}

} // namespace
} // namespace troupe::models::gpu
