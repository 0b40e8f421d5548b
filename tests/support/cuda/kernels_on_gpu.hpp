// First light of our own kernels: a GPU computes the bits that the host does,
// from the same bodies over the same numbers.
#pragma once

#include "models/gpu/kernels/launch.hpp"

#include <gtest/gtest.h>

#include "tests/support/models/lane_orders.hpp"
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace troupe::testing {

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
  models::gpu::run_on_host(make(host), blocks);
  models::gpu::launch(make(device), blocks, nullptr);
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

} // namespace troupe::testing
