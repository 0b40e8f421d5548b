// First light of our own kernels: a GPU computes the bits that the host does,
// from the same bodies over the same numbers. Built with CUDA only.
#include "models/gpu/kernels/adamw_step.hpp"
#include "models/gpu/kernels/add_rows.hpp"
#include "models/gpu/kernels/decode_append.hpp"
#include "models/gpu/kernels/decode_attend.hpp"
#include "models/gpu/kernels/draw_token.hpp"
#include "models/gpu/kernels/embed_tokens.hpp"
#include "models/gpu/kernels/gated_unit.hpp"
#include "models/gpu/kernels/launch.hpp"
#include "models/gpu/kernels/logit_gradient.hpp"
#include "models/gpu/kernels/logit_parts.hpp"
#include "models/gpu/kernels/rms_norm.hpp"
#include "models/gpu/kernels/rms_norm_backward.hpp"
#include "models/gpu/kernels/squared_norm.hpp"

#include <gtest/gtest.h>

#include "tests/support/models/lane_orders.hpp"
#include <cuda_runtime_api.h>

#include <cmath>
#include <cstring>
#include <vector>

namespace troupe::models::gpu {
namespace {

using troupe::testing::bf16_numbers;
using troupe::testing::stored_as;

/// A kernel's buffers, in the host's memory or in a GPU's.
class KernelMemory {
public:
  explicit KernelMemory(bool on_gpu) : on_gpu_(on_gpu) {}
  KernelMemory(const KernelMemory&) = delete;
  KernelMemory& operator=(const KernelMemory&) = delete;
  ~KernelMemory() {
    for (const Buffer& buffer : buffers_)
      if (on_gpu_)
        cudaFree(buffer.data);
  }

  /// Returns a buffer with this content.
  template <class T>
  T* put(const std::vector<T>& numbers) {
    Buffer& buffer = buffers_.emplace_back();
    buffer.on_host.resize(numbers.size() * sizeof(T));
    std::memcpy(buffer.on_host.data(), numbers.data(), buffer.on_host.size());
    buffer.data = buffer.on_host.data();
    if (on_gpu_) {
      EXPECT_EQ(cudaMalloc(&buffer.data, buffer.on_host.size()), cudaSuccess);
      EXPECT_EQ(cudaMemcpy(buffer.data, buffer.on_host.data(),
                           buffer.on_host.size(), cudaMemcpyHostToDevice),
                cudaSuccess);
    }
    return static_cast<T*>(buffer.data);
  }
  template <class T>
  T* zeros(std::int64_t count) {
    return put(std::vector<T>(std::size_t(count)));
  }
  /// Returns bf16 numbers, stored as T.
  template <class T>
  T* numbers(std::int64_t count, std::uint64_t seed, float scale = 1) {
    return put(stored_as<T>(bf16_numbers(count, seed, scale)));
  }

  /// Returns the content of all buffers.
  std::vector<std::byte> bytes() const {
    std::vector<std::byte> all;
    for (const Buffer& buffer : buffers_) {
      std::vector<std::byte> content = buffer.on_host;
      if (on_gpu_) {
        EXPECT_EQ(cudaMemcpy(content.data(), buffer.data, content.size(),
                             cudaMemcpyDeviceToHost),
                  cudaSuccess);
      }
      all.insert(all.end(), content.begin(), content.end());
    }
    return all;
  }

private:
  struct Buffer {
    std::vector<std::byte> on_host;
    void* data = nullptr;
  };
  bool on_gpu_;
  std::vector<Buffer> buffers_;
};

/// Runs the kernel that make(memory) returns on both sides.
template <class Make>
void expect_the_hosts_bits(std::int64_t blocks, const Make& make) {
  KernelMemory host(/*on_gpu=*/false);
  KernelMemory device(/*on_gpu=*/true);
  run_on_host(make(host), blocks);
  launch(make(device), blocks, nullptr);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  const auto want = host.bytes();
  const auto got = device.bytes();
  ASSERT_EQ(got.size(), want.size());
  std::size_t differ = 0;
  for (std::size_t i = 0; i < want.size(); ++i)
    differ += got[i] != want[i] ? 1 : 0;
  EXPECT_EQ(differ, 0) << "bytes, of " << want.size();
}

class GpuKernels : public ::testing::Test {
protected:
  void SetUp() override {
    int count = 0;
    const cudaError_t error = cudaGetDeviceCount(&count);
    if (error != cudaSuccess || count == 0)
      GTEST_SKIP() << "no GPU: " << cudaGetErrorString(error);
  }
};

template <class T>
void expect_norms() {
  constexpr std::int64_t rows = 40, width = 1003;
  expect_the_hosts_bits(RmsNorm<T>::blocks(rows), [&](KernelMemory& memory) {
    return RmsNorm<T>{memory.numbers<T>(rows * width, 1),
                      memory.numbers<T>(rows * width, 2),
                      memory.numbers<T>(width, 3),
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
                              memory.numbers<T>(width, 3),
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
