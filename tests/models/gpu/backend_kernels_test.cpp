// Kernels of the backend under test (backend_support.hpp) beside the host's, on
// the same numbers, each alone: where a golden model differs on a GPU, these
// say in which kernel. Shapes are no multiples of a vector's, but those of
// fused attention.
#include "models/kernels/backend.hpp"
#include "models/kernels/host_backend.hpp"
#include "models/kernels/kv_cache.hpp"
#include "models/kernels/typed_block.hpp"

#include <ATen/ops/from_blob.h>
#include <gtest/gtest.h>

#include "tests/support/models/backend_support.hpp"
#include "tests/support/models/reference.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>

namespace troupe::models {
namespace {

using troupe::testing::random_floats;

using KernelBuffers = std::vector<std::vector<float>>;
/// A kernel over buffers in the memory of its backend.
using KernelUnderTest
  = std::function<void(Backend&, const std::vector<float*>&)>;

/// Returns all buffers after the kernel.
KernelBuffers run_kernel(Backend& backend, KernelBuffers buffers,
                         const KernelUnderTest& kernel) {
  backend.enter();
  std::vector<AlignedFloats> memory;
  std::vector<float*> data;
  for (const auto& numbers : buffers) {
    memory.emplace_back(backend.memory());
    data.push_back(
      memory.back().reserve(static_cast<std::int64_t>(numbers.size())));
    backend.write(numbers.data(), data.back(), numbers.size() * sizeof(float));
  }
  kernel(backend, data);
  for (std::size_t i = 0; i < buffers.size(); ++i)
    std::copy_n(backend.read(data[i], std::ssize(buffers[i])).floats(),
                buffers[i].size(), buffers[i].begin());
  return buffers;
}

/// Expects the numbers of the host, and the same bits again (I8). `tolerance`:
/// of a number of about 1; larger ones may differ by this share of themselves.
void expect_host_numbers(const KernelBuffers& buffers,
                         const KernelUnderTest& kernel,
                         float tolerance = 2e-4F) {
  const auto wanted = run_kernel(host_backend(), buffers, kernel);
  Backend& backend = troupe::testing::backend_under_test();
  const auto found = run_kernel(backend, buffers, kernel);
  ASSERT_NE(wanted, buffers) << "the kernel computed nothing";
  for (std::size_t i = 0; i < wanted.size(); ++i)
    for (std::size_t j = 0; j < wanted[i].size(); ++j)
      ASSERT_NEAR(found[i][j], wanted[i][j],
                  tolerance * std::max(1.0F, std::abs(wanted[i][j])))
        << "buffer " << i << " element " << j;
  EXPECT_EQ(run_kernel(backend, buffers, kernel), found) << "the same bits";
}

std::vector<float> zeros(std::int64_t count) {
  return std::vector<float>(static_cast<std::size_t>(count));
}

TEST(BackendKernels, MoveAndAddFloats) {
  const std::vector<std::int64_t> rows{3, -1, 0, 6};
  expect_host_numbers({random_floats(7 * 13, 1), zeros(7 * 13)},
                      [](Backend& b, const auto& x) {
                        b.fill(x[1], 40, 2.5F);
                        b.copy(x[0], x[1] + 41, 50);
                        b.add(x[0], x[1], x[1], 77);
                        b.scale(x[1], 90, -0.5F);
                      });
  expect_host_numbers({random_floats(7 * 13, 2), zeros(4 * 13),
                       random_floats(7 * 13, 3), zeros(7 * 13)},
                      [&](Backend& b, const auto& x) {
                        const RowList list{rows, 13, 0.5F};
                        b.gather_rows(list, x[0], x[1]);
                        b.add_rows(list, x[0], x[2]);
                        b.scatter_rows(list, x[1], x[3]);
                      });
  expect_host_numbers(
    {random_floats(60, 4), zeros(60)}, [](Backend& b, const auto& x) {
      b.copy_box({{1, 3, 4, 5}, {60, 20, 5}, {60, 5, 15}}, x[0], x[1]);
    });
}

TEST(BackendKernels, EmbedTokensOfTheDevice) {
  constexpr std::int64_t width = 21, known = 6, places = 5;
  const std::vector<DecodeToken> tokens{
    {40, 0, 4}, {45, 1, 0}, {46, 2, 2},          {39, 0, 3},
    {43, 5, 1}, {-3, 6, 2}, {drawn_in(0), 3, 3}, {drawn_in(1), 4, 0}};
  const std::vector<DrawnToken> drawn{{44, 0}, {-1, 0}, {40, 0}};
  for (const bool with_positions : {false, true})
    expect_host_numbers(
      {random_floats(known * width, 1), random_floats(places * width, 2),
       zeros(std::ssize(tokens) * width), zeros(3 * std::ssize(tokens)),
       zeros(2 * std::ssize(drawn))},
      [&](Backend& b, const auto& x) {
        b.write(tokens.data(), x[3], tokens.size() * sizeof(DecodeToken));
        b.write(drawn.data(), x[4], drawn.size() * sizeof(DrawnToken));
        Embedding from{
          .width = width,
          .tokens = {x[0], known},
          .first_token = 40,
          .factor = 2.5F,
          .drawn_N = {reinterpret_cast<const DrawnToken*>(x[4]), drawn.size()}};
        if (with_positions)
          from.positions = {x[1], places};
        b.embed(from,
                {reinterpret_cast<const DecodeToken*>(x[3]), tokens.size()},
                x[2]);
        b.fill(x[3], 3 * std::ssize(tokens), 0.0F); // negative ids are NaN
        b.fill(x[4], 2 * std::ssize(drawn), 0.0F);
      });
}

class BackendProducts : public ::testing::TestWithParam<DType> {};

TEST_P(BackendProducts, OfMatricesAndPreparedWeights) {
  constexpr std::int64_t m = 19, n = 45, k = 70;
  const float tolerance = GetParam() == DType::f32 ? 2e-4F : 2e-3F;
  GemmOptions options;
  options.operands = GetParam();
  const KernelBuffers buffers{random_floats(m * k, 1), random_floats(n * k, 2),
                              random_floats(m * n, 3)};
  for (const bool accumulate : {false, true}) {
    options.accumulate = accumulate;
    const auto product = [&](Backend& b, const auto& x) {
      b.gemm({m, n, k}, {x[0], k, 1}, {x[1], 1, k}, {x[2], n}, options);
    };
    expect_host_numbers(buffers, product, tolerance);
    const auto prepared = [&](Backend& b, const auto& x) {
      const std::vector<at::Tensor> parts{at::from_blob(x[1], {n, k})};
      const auto weight = b.prepare(parts, GetParam());
      b.product(m, x[0], *weight, {x[2], n}, options);
      b.wait(); // the weight must outlive the product
    };
    expect_host_numbers(buffers, prepared, tolerance);
  }
}

TEST_P(BackendProducts, OfWeightsThatArePreparedAgainInTheirPlace) {
  constexpr std::int64_t m = 5, n = 18, k = 33;
  const KernelBuffers buffers{random_floats(m * k, 1), random_floats(n * k, 2),
                              random_floats(n * k, 3), zeros(m * 2 * n),
                              random_floats(2 * n * k, 4)};
  const auto again = [&](Backend& b, const auto& x) {
    const auto parts = [&](float* first) {
      return std::vector<at::Tensor>{at::from_blob(first, {n, k}),
                                     at::from_blob(x[2], {n, k})};
    };
    auto weight = b.prepare(parts(x[4]), GetParam());
    const void* place = weight->place();
    weight = b.prepare(parts(x[1]), GetParam(), std::move(weight));
    EXPECT_EQ(weight->place(), place);
    b.product(m, x[0], *weight, {x[3], 2 * n}, {});
    b.wait();
    const std::vector<at::Tensor> larger{parts(x[1])[0], parts(x[1])[0],
                                         parts(x[1])[1]};
    weight = b.prepare(larger, GetParam(), std::move(weight));
    EXPECT_EQ(weight->out(), 3 * n);
    b.wait();
  };
  expect_host_numbers(buffers, again, GetParam() == DType::f32 ? 2e-4F : 2e-3F);
}

INSTANTIATE_TEST_SUITE_P(Operands, BackendProducts,
                         ::testing::Values(DType::f32, DType::bf16),
                         [](const auto& type) {
                           return std::string(to_string(type.param));
                         });

TEST(BackendKernels, NormsAndTheirGradients) {
  constexpr std::int64_t rows = 9, width = 37;
  for (const NormKind kind :
       {NormKind::rms, NormKind::rms_one_plus, NormKind::layer}) {
    const NormShape shape{rows, width, 1e-5F, kind};
    const bool has_bias = kind == NormKind::layer;
    expect_host_numbers(
      {random_floats(rows * width, 1), random_floats(width, 2),
       random_floats(width, 3), zeros(rows * width), zeros(rows),
       random_floats(rows * width, 4), random_floats(rows * width, 5),
       zeros(width), zeros(width)},
      [&](Backend& b, const auto& x) {
        const NormWeights weights{x[1], has_bias ? x[2] : nullptr};
        Workspace workspace(b.memory());
        b.norm(shape, x[0], weights, x[3], x[4]);
        b.norm_backward(shape, x[5], x[0], weights, x[4], x[6],
                        {x[7], has_bias ? x[8] : nullptr}, workspace);
        b.wait();
      });
  }
  expect_host_numbers({random_floats(rows * width, 6), zeros(width)},
                      [](Backend& b, const auto& x) {
                        Workspace workspace(b.memory());
                        b.add_column_sums(x[0], rows, width, width, x[1],
                                          workspace);
                        b.wait();
                      });
}

TEST(BackendKernels, HeadNormsAndTheirGradients) {
  constexpr std::int64_t rows = 6, heads = 3, width = 10, stride = 40;
  const QkNormShape shape{rows, stride, heads, width, 1e-5F};
  expect_host_numbers({random_floats(width, 1), random_floats(rows * stride, 2),
                       zeros(rows * heads * width),
                       random_floats(rows * stride, 3), zeros(width)},
                      [&](Backend& b, const auto& x) {
                        Workspace workspace(b.memory());
                        b.qk_norm(shape, x[0], x[1], x[2]);
                        b.qk_norm_backward(shape, x[0], x[2], x[3], x[4],
                                           workspace);
                        b.wait();
                      });
}

TEST(BackendKernels, RotationThereAndBack) {
  constexpr std::int64_t rows = 5, heads = 3, width = 8, stride = 30;
  const std::vector<std::int32_t> positions{0, 7, 3, 20, 1};
  for (const bool backwards : {false, true})
    expect_host_numbers(
      {random_floats(rows * stride, 1)}, [&](Backend& b, const auto& x) {
        RopeTable table({1.0F, 0.3F, 0.1F, 0.02F}, 1.0F, b);
        table.grow(21);
        b.rope({rows, stride, heads, width}, table, positions, x[0], backwards);
        b.wait();
      });
}

/// Attention and its gradient over three sequences.
void expect_attention(AttentionShape shape, float tolerance) {
  const std::vector<std::int64_t> borders{0, 5, 6, 33};
  shape.cu_seqlens = borders;
  const std::int64_t rows = borders.back();
  const std::int64_t context = rows * shape.heads * shape.head_dim;
  expect_host_numbers(
    {random_floats(rows * shape.columns(), 1), zeros(context),
     zeros(shape.heads * rows), random_floats(context, 2),
     zeros(rows * shape.columns())},
    [&](Backend& b, const auto& x) {
      b.attention(shape, x[0], x[1], x[2]);
      b.attention_backward(shape, x[0], x[1], x[2], x[3], x[4]);
    },
    tolerance);
}

TEST(BackendKernels, AttentionAndItsGradient) {
  expect_attention({4, 2, 10}, 2e-4F);
  AttentionShape window{4, 2, 10};
  window.window = 4;
  expect_attention(window, 2e-4F);
  AttentionShape capped{2, 2, 16};
  capped.cap = 5;
  expect_attention(capped, 2e-4F);
}

// The host computes in fp32 whatever the operands are.
TEST(BackendKernels, FusedAttentionOfALlamaAndItsGradient) {
  AttentionShape llama{32, 8, 128};
  llama.operands = DType::bf16;
  expect_attention(llama, 5e-2F);
  llama.window = 16;
  expect_attention(llama, 5e-2F);
}

/// Tokens of adjacent slots in a pass of generation: how many each has cached,
/// and how many it gets.
using PromptCounts
  = std::vector<std::pair<std::int32_t /*cached*/, std::int32_t /*fed*/>>;

/// Feeds prompts in the type that the backend stores bf16 in.
void feed_prompts(Backend& b, const DecodeAttention& what,
                  const PromptCounts& counts, KvCache& cache, const float* qkv,
                  float* room, float* context) {
  std::vector<DecodeToken> tokens;
  std::vector<DecodeGroup> groups;
  for (std::int32_t slot = 0; slot < std::ssize(counts); ++slot) {
    const auto [cached, fed] = counts[static_cast<std::size_t>(slot)];
    groups.push_back(
      {tokens.size(), static_cast<std::size_t>(fed), slot, cached + fed});
    for (std::int32_t i = 0; i < fed; ++i)
      tokens.push_back({0, slot, cached + i});
  }
  cache.begin_pass(tokens);
  b.write(tokens.data(), room, tokens.size() * sizeof(DecodeToken));
  const std::int64_t rows = std::ssize(tokens);
  const std::int64_t width = what.heads * what.head_dim;
  TypedBlock stored_qkv(b.memory(), cache.type());
  TypedBlock stored_context(b.memory(), cache.type());
  b.copy(qkv, stored_qkv.reserve(rows * what.columns()), rows * what.columns());
  b.decode_attention(
    what, {{reinterpret_cast<const DecodeToken*>(room), tokens.size()}, groups},
    cache, stored_qkv.data(), stored_context.reserve(rows * width));
  b.copy(stored_context.data(), context, rows * width);
  b.wait();
}

TEST(BackendKernels, AttentionOfALlamasPromptsAndOfWhatContinuesThem) {
  constexpr std::int64_t rows = 27, columns = (32 + 2 * 8) * 128;
  for (const std::int64_t window : {0, 16}) {
    DecodeAttention llama{0, 32, 8, 128};
    llama.scale = 0.09F;
    llama.window = window;
    expect_host_numbers(
      {random_floats(2 * rows * columns, 1), zeros(3 * rows),
       zeros(2 * rows * 32 * 128)},
      [&](Backend& b, const auto& x) {
        ModelShape shape;
        shape.num_layers = 1;
        shape.num_kv_heads = llama.kv_heads;
        shape.head_dim = llama.head_dim;
        KvCache cache(shape, b, b.storage(DType::bf16));
        cache.reset(3, 40);
        for (int slot = 0; slot < 3; ++slot)
          cache.take_slot();
        feed_prompts(b, llama, {{0, 20}, {0, 7}}, cache, x[0], x[1], x[2]);
        feed_prompts(b, llama, {{20, 13}, {7, 2}, {0, 12}}, cache,
                     x[0] + rows * columns, x[1], x[2] + rows * 32 * 128);
      },
      5e-2F);
  }
}

TEST(BackendKernels, MlpsAndTheirGradients) {
  constexpr std::int64_t rows = 7, width = 33;
  for (const Activation activation :
       {Activation::silu, Activation::gelu, Activation::gelu_tanh})
    for (const bool gated : {true, false}) {
      const MlpShape shape{rows, width, activation, gated};
      expect_host_numbers({random_floats(rows * shape.columns(), 1),
                           zeros(rows * width), random_floats(rows * width, 2)},
                          [&](Backend& b, const auto& x) {
                            b.mlp_unit(shape, x[0], x[1]);
                            b.mlp_unit_backward(shape, x[0], x[2]);
                          });
    }
}

TEST(BackendKernels, StatisticsOfLogitsAndTheirGradient) {
  constexpr std::int64_t rows = 6, vocab = 101;
  const std::vector<std::int64_t> targets{0, 100, 7, 50, 3, 99};
  const LogitRows shape{rows, vocab, 1 / 0.7F, 0, targets};
  expect_host_numbers(
    {random_floats(rows * vocab, 1), zeros(rows * row_part_floats), zeros(rows),
     zeros(rows), zeros(rows), random_floats(rows, 2)},
    [&](Backend& b, const auto& x) {
      auto* parts = reinterpret_cast<RowPart*>(x[1]);
      b.logit_parts(shape, x[0], parts);
      b.join_parts(shape, 1, parts, {x[2], x[3], x[4]});
      b.logit_gradient(shape, {x[5], nullptr, x[3], x[4]}, x[0]);
    });
  expect_host_numbers(
    {random_floats(rows * vocab, 3)},
    [](Backend& b, const auto& x) { b.cap_logits(x[0], rows * vocab, 3.0F); });
}

TEST(BackendKernels, ScalarHeadsAndTheirGradients) {
  constexpr std::int64_t rows = 6, width = 35;
  expect_host_numbers(
    {random_floats(width, 1), random_floats(rows * width, 2), zeros(rows),
     random_floats(rows, 3), random_floats(rows * width, 4), zeros(width)},
    [](Backend& b, const auto& x) {
      b.scalar_rows(x[0], width, x[1], rows, x[2]);
      b.scalar_rows_backward(x[0], width, x[1], rows, x[3], x[4], x[5]);
    });
}

TEST(BackendKernels, AdamwAndTheNormOfGradients) {
  constexpr std::int64_t count = 100;
  const std::vector<OptimizerRun> runs{{.begin = 0, .end = 64, .decay = true},
                                       {.begin = 64, .end = 100, .moment = 64}};
  const AdamNumbers numbers{0.99F, 0.5F, 0.9F, 0.95F, 1e-2F, 1.1F, 1e-6F};
  expect_host_numbers(
    {random_floats(count, 1), random_floats(count, 2), random_floats(count, 3),
     std::vector<float>(count, 0.3F), zeros(1)},
    [&](Backend& b, const auto& x) {
      const auto sum = static_cast<float>(b.sum_of_squares(x[1], runs));
      b.fill(x[4], 1, sum);
      b.adamw(numbers, {x[0], x[1], x[2], x[3]}, runs);
    });
}

} // namespace
} // namespace troupe::models
