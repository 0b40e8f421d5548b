// Kernels of training on a GPU: norms, MLP units, rows, logits, the optimizer.
// Built with CUDA, and for pretended GPUs.
#include "models/gpu/kernels/adamw_step.hpp"
#include "models/gpu/kernels/add_rows.hpp"
#include "models/gpu/kernels/gated_unit.hpp"
#include "models/gpu/kernels/logit_gradient.hpp"
#include "models/gpu/kernels/logit_parts.hpp"
#include "models/gpu/kernels/qk_norm.hpp"
#include "models/gpu/kernels/rms_norm.hpp"
#include "models/gpu/kernels/rms_norm_backward.hpp"
#include "models/gpu/kernels/scatter_rows.hpp"
#include "models/gpu/kernels/squared_norm.hpp"

#include <gtest/gtest.h>

#include "tests/support/cuda/kernels_on_gpu.hpp"

#include <vector>

namespace troupe::models::gpu {
namespace {

using troupe::testing::expect_the_hosts_bits;
using troupe::testing::GpuKernels;
using troupe::testing::KernelMemory;

template <class T>
void expect_norms() {
  constexpr std::int64_t rows = 40, width = 1003;
  expect_the_hosts_bits(RmsNorm<T>::blocks(rows), [&](KernelMemory& memory) {
    return RmsNorm<T>{memory.numbers<T>(rows * width, 1),
                      memory.numbers<T>(rows * width, 2),
                      memory.numbers<float>(width, 3),
                      memory.zeros<T>(rows * width),
                      memory.zeros<float>(rows),
                      width,
                      1e-6F,
                      1};
  });
  const std::int64_t chunks = RmsNormBackward<T>::blocks(rows);
  expect_the_hosts_bits(chunks, [&](KernelMemory& memory) {
    return RmsNormBackward<T>{memory.numbers<T>(rows * width, 1),
                              memory.numbers<T>(rows * width, 2),
                              memory.numbers<float>(width, 3),
                              memory.numbers<float>(rows, 4),
                              memory.numbers<T>(rows * width, 5),
                              memory.zeros<float>(chunks * width),
                              rows,
                              width,
                              0};
  });
}

TEST_F(GpuKernels, NormsHaveTheHostsBits) {
  expect_norms<float>();
  expect_norms<Bf16>();
  constexpr std::int64_t width = 1003;
  expect_the_hosts_bits(AddRows::blocks(width), [&](KernelMemory& memory) {
    return AddRows{memory.numbers<float>(37 * width, 1),
                   memory.numbers<float>(width, 2), 37, width};
  });
}

template <class T>
void expect_head_norms(const HeadRows& shape, float plus) {
  const std::int64_t all = shape.rows * shape.stride;
  const std::int64_t kept = shape.count() * shape.dim;
  expect_the_hosts_bits(
    HeadNorm<T>::blocks(shape.count()), [&](KernelMemory& memory) {
      return HeadNorm<T>{shape,
                         memory.numbers<float>(shape.dim, 1),
                         memory.numbers<T>(all, 2),
                         memory.zeros<T>(kept),
                         1e-5F,
                         plus};
    });
  const std::int64_t sums
    = HeadNormBackward<T>::chunks(shape.count()) * shape.dim;
  expect_the_hosts_bits(
    HeadNormBackward<T>::blocks(shape.count()), [&](KernelMemory& memory) {
      return HeadNormBackward<T>{shape,
                                 memory.numbers<float>(shape.dim, 1),
                                 memory.numbers<T>(kept, 2),
                                 memory.numbers<T>(all, 3),
                                 memory.zeros<float>(sums),
                                 1e-5F,
                                 plus};
    });
}

TEST_F(GpuKernels, NormsOfHeadsHaveTheHostsBits) {
  const HeadRows some{5, 70, 3, 20};
  const HeadRows many{300, 3 * 128 + 64, 3, 128}; // two blocks backward
  for (const HeadRows& shape : {some, many}) {
    expect_head_norms<float>(shape, 0);
    expect_head_norms<Bf16>(shape, 1);
  }
}

template <class Unit, class T>
void expect_units() {
  constexpr std::int64_t rows = 5, width = 2500;
  const std::int64_t blocks = GatedUnit<Unit, T>::blocks(rows, width);
  expect_the_hosts_bits(blocks, [&](KernelMemory& memory) {
    return GatedUnit<Unit, T>{memory.numbers<T>(2 * rows * width, 1, 3),
                              memory.zeros<T>(rows * width), width};
  });
  expect_the_hosts_bits(blocks, [&](KernelMemory& memory) {
    return GatedUnitBackward<Unit, T>{memory.numbers<T>(2 * rows * width, 1, 3),
                                      memory.numbers<T>(rows * width, 2),
                                      width};
  });
}

TEST_F(GpuKernels, UnitsHaveTheHostsBits) {
  expect_units<Silu, float>();
  expect_units<Silu, Bf16>();
  expect_units<Gelu, float>();
  expect_units<Gelu, Bf16>();
  expect_units<GeluTanh, float>();
  expect_units<GeluTanh, Bf16>();
}

TEST_F(GpuKernels, TheOptimizerHasTheHostsBits) {
  const std::vector<OptimizerRun> runs{{0, 5000, 0, true, true},
                                       {5003, 9000, 5000, false, false}};
  const auto blocks = std::int64_t(runs.size());
  const AdamNumbers numbers{1 - 1e-5F, 0.5F, 0.9F, 0.95F, 1e-3F, 1.5F, 1e-8F};
  expect_the_hosts_bits(blocks, [&](KernelMemory& memory) {
    return AdamwStep{numbers,
                     {memory.numbers<float>(9000, 1),
                      memory.numbers<float>(9000, 2),
                      memory.numbers<float>(9000, 3),
                      memory.put(std::vector<float>(9000, 0.5F)),
                      memory.zeros<std::uint16_t>(9000)},
                     memory.put(runs)};
  });
  expect_the_hosts_bits(blocks, [&](KernelMemory& memory) {
    return RunSquares{memory.numbers<float>(9000, 1), memory.put(runs),
                      memory.zeros<double>(blocks)};
  });
  expect_the_hosts_bits(1, [&](KernelMemory& memory) {
    return JoinSquares{memory.put(std::vector<double>(900, 0.1)), 900,
                       memory.zeros<double>(1)};
  });
}

template <class From, class To>
void expect_listed_rows() {
  constexpr std::int64_t width = 700, targets = 3;
  // rows 0, 4 and 3 are added to, by one, three and two of the list
  const std::vector<std::int64_t> lists{0, 1, 4, 6, 0, 4, 3, 1, 0, 3, 4, 2, 5};
  for (const bool weighted : {true, false})
    expect_the_hosts_bits(targets, [&](KernelMemory& memory) {
      return ScatterRows<From, To>{memory.numbers<From>(6 * width, 1),
                                   memory.numbers<To>(5 * width, 2),
                                   memory.put(lists),
                                   weighted ? memory.numbers<float>(6, 3)
                                            : nullptr,
                                   0.3F,
                                   targets,
                                   width};
    });
}

TEST_F(GpuKernels, ListedRowsHaveTheHostsBits) {
  expect_listed_rows<float, float>();
  expect_listed_rows<Bf16, float>();
  expect_listed_rows<Bf16, Bf16>();
}

template <class T>
void expect_logits() {
  constexpr std::int64_t rows = 4, vocab = 50001;
  const std::vector<std::int64_t> targets{0, -1, vocab, 777};
  expect_the_hosts_bits(rows, [&](KernelMemory& memory) {
    return LogitParts<T>{memory.numbers<T>(rows * vocab, 1, 4),
                         memory.put(targets), memory.zeros<RowPart>(rows),
                         vocab, 1.25F};
  });
  expect_the_hosts_bits(rows, [&](KernelMemory& memory) {
    return LogitGradient<T>{memory.numbers<T>(rows * vocab, 1, 4),
                            memory.put(targets),
                            {memory.numbers<float>(rows, 2),
                             memory.numbers<float>(rows, 3),
                             memory.put(std::vector<float>(rows, 8)),
                             memory.put(std::vector<float>(rows, 20))},
                            vocab,
                            1.25F,
                            1.0F / 30};
  });
}

TEST_F(GpuKernels, LogitRowsHaveTheHostsBits) {
  expect_logits<float>();
  expect_logits<Bf16>();
  expect_the_hosts_bits(2, [&](KernelMemory& memory) {
    const std::vector<RowPart> parts(600, {1.5F, 3.25F, -2.0F, 0.5F});
    return JoinLogitParts{memory.put(parts),
                          2,
                          300,
                          1.25F,
                          {memory.zeros<float>(300), memory.zeros<float>(300),
                           memory.zeros<float>(300)}};
  });
}

} // namespace
} // namespace troupe::models::gpu
