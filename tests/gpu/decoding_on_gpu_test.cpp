// Kernels of generation on a GPU: embeddings, rotations, the paged cache,
// attention over it, draws. Built with CUDA, and for pretended GPUs.
#include "models/gpu/kernels/decode_append.hpp"
#include "models/gpu/kernels/decode_attend.hpp"
#include "models/gpu/kernels/draw_token.hpp"
#include "models/gpu/kernels/embed_tokens.hpp"
#include "models/gpu/kernels/join_attention.hpp"
#include "models/gpu/kernels/rotation.hpp"

#include <gtest/gtest.h>

#include "tests/support/cuda/kernels_on_gpu.hpp"

#include <vector>

namespace troupe::models::gpu {
namespace {

using troupe::testing::expect_the_hosts_bits;
using troupe::testing::GpuKernels;
using troupe::testing::KernelMemory;

Rotation rotation_of(KernelMemory& memory) {
  return {memory.numbers<float>(600 * 32, 1),
          memory.numbers<float>(600 * 32, 2), 32};
}

template <class T>
void expect_rotations() {
  constexpr std::int64_t rows = 9, heads = 6, dim = 70;
  const std::vector<std::int32_t> positions{0, 1, 255, 256, 511, 3, 4, 5, 599};
  expect_the_hosts_bits(rows, [&](KernelMemory& memory) {
    return Rotate<T>{{rows, heads * dim, heads, dim},
                     rotation_of(memory),
                     memory.put(positions),
                     memory.numbers<T>(rows * heads * dim, 3),
                     true};
  });
}

TEST_F(GpuKernels, RotationsHaveTheHostsBits) {
  expect_rotations<float>();
  expect_rotations<Bf16>();
}

constexpr std::int64_t page_heads = 2, page_dim = 70;

/// Two slots with three pages each.
template <class T>
PagedCache<T> pages_of(KernelMemory& memory) {
  constexpr std::int32_t page_tokens = 256;
  constexpr std::int64_t stride = 2 * page_tokens * page_dim;
  T* keys = memory.numbers<T>(6 * page_heads * stride, 4);
  return {keys,
          keys + page_tokens * page_dim,
          memory.put<std::int32_t>({4, 0, 5, 2, 1, 3}),
          3,
          page_tokens,
          page_heads,
          stride,
          page_dim};
}

template <class T>
void expect_decoding() {
  constexpr std::int64_t rows = 4, heads = 6, chunks = 3;
  constexpr std::int64_t columns = (heads + 2 * page_heads) * page_dim;
  const std::vector<DecodeToken> tokens{
    {0, 0, 0}, {0, 1, 255}, {0, 0, 256}, {0, 1, 599}};
  expect_the_hosts_bits(
    rows * (heads + 2 * page_heads), [&](KernelMemory& memory) {
      return DecodeAppend<T>{memory.numbers<T>(rows * columns, 3),
                             memory.put(tokens),
                             pages_of<T>(memory),
                             rotation_of(memory),
                             {},
                             heads,
                             page_dim};
    });
  expect_the_hosts_bits(rows * page_heads * chunks, [&](KernelMemory& memory) {
    return DecodeAttend<T>{
      {heads, page_dim, chunks, 300, 0.125F, 0},
      pages_of<T>(memory),
      memory.numbers<T>(rows * columns, 3),
      memory.put(tokens),
      nullptr,
      memory.zeros<ChunkSoftmax>(rows * heads * chunks),
      memory.zeros<float>(rows * heads * chunks * page_dim)};
  });
}

TEST_F(GpuKernels, DecodingOverPagesHasTheHostsBits) {
  expect_decoding<float>();
  expect_decoding<Bf16>();
}

template <class T>
void expect_joined_chunks() {
  constexpr std::int64_t heads = 3, chunks = 4, parts = 2 * heads * chunks;
  std::vector<ChunkSoftmax> softmax;
  for (std::int64_t i = 0; i < parts; ++i) {
    const auto number = static_cast<float>(i);
    softmax.push_back({2.5F - 0.75F * number, 1 + 0.3F * number});
  }
  softmax[1] = softmax[chunks] = {}; // of chunks without keys
  expect_the_hosts_bits(2 * heads, [&](KernelMemory& memory) {
    return JoinAttention<T>{{heads, page_dim, chunks, 0, 1, 0},
                            memory.put(softmax),
                            memory.numbers<float>(parts * page_dim, 1),
                            memory.put<std::int64_t>({2, 0}), // of three rows
                            memory.zeros<T>(3 * heads * page_dim)};
  });
}

TEST_F(GpuKernels, JoinedChunksOfKeysHaveTheHostsBits) {
  expect_joined_chunks<float>();
  expect_joined_chunks<Bf16>();
}

template <class Table, class T>
void expect_embeddings() {
  constexpr std::int64_t vocab = 50, places = 9, width = 1003;
  const std::vector<DecodeToken> tokens{{100, 0, 0}, {149, 1, 8}, {99, 2, 3}};
  expect_the_hosts_bits(EmbedTokens<Table, T>::blocks(std::ssize(tokens)),
                        [&](KernelMemory& memory) {
                          return EmbedTokens<Table, T>{
                            memory.numbers<Table>(vocab * width, 1),
                            vocab,
                            100,
                            memory.numbers<Table>(places * width, 2),
                            memory.put(tokens),
                            memory.zeros<T>(std::ssize(tokens) * width),
                            width,
                            1.3F};
                        });
}

TEST_F(GpuKernels, EmbeddingsHaveTheHostsBits) {
  expect_embeddings<float, float>();
  expect_embeddings<float, Bf16>();
  expect_embeddings<Bf16, float>();
  expect_embeddings<Bf16, Bf16>();
}

template <class T>
void expect_draws(const DrawOptions& options) {
  constexpr std::int64_t rows = 16, vocab = 50001;
  std::vector<DrawKey> keys;
  for (std::uint32_t row = 0; row < rows; ++row)
    keys.push_back({{row, 5}, row * 3, row + 7});
  expect_the_hosts_bits(rows, [&](KernelMemory& memory) {
    return DrawToken<T>{memory.numbers<T>(rows * vocab, 1, 3), memory.put(keys),
                        memory.zeros<DrawnToken>(rows), vocab, options};
  });
}

TEST_F(GpuKernels, DrawsHaveTheHostsBits_I2) {
  for (const DrawOptions& options :
       {DrawOptions{}, DrawOptions{.temperature = 0.7F, .top_k = 50},
        DrawOptions{.top_p = 0.9, .log_min_p = -6, .filtered_logprobs = true},
        DrawOptions{.top_k = 3000, .top_p = 0.5},
        DrawOptions{.greedy = true}}) {
    expect_draws<float>(options);
    expect_draws<Bf16>(options);
  }
}

} // namespace
} // namespace troupe::models::gpu
