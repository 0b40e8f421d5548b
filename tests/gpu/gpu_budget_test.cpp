// The limit of libtorch's allocator and the peak of what it gave, on pretended
// GPUs (docs/gpu_tests.md).
#include "config/base/error.hpp"
#include "models/gpu/gpu.hpp"
#include "models/gpu/gpu_budget.hpp"
#include "models/kernels/aligned_floats.hpp"
#include "models/kernels/backend.hpp"
#include "net/base/gpus.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <dlfcn.h>

#include <cstdint>

namespace troupe::models {
namespace {

constexpr std::int64_t block_floats = 8 << 20;
constexpr std::uint64_t block_bytes = block_floats * sizeof(float);

class GpuBudget : public ::testing::Test {
protected:
  void SetUp() override {
    if (::dlsym(RTLD_DEFAULT, "standin_begin") == nullptr)
      GTEST_SKIP() << "no GPU: not under tests/gpu/standin.sh";
    backend().enter();
    release_kept_gpu_memory();
    begin_gpu_peak(0);
    taken_before_ = gpu_peak_bytes(0);
  }
  void TearDown() override {
    if (!IsSkipped())
      limit_gpu_memory(0, net::find_gpus().memory_bytes.front());
  }
  static Backend& backend() {
    return gpu_backend(0);
  }
  std::uint64_t taken_before_ = 0;
};

TEST_F(GpuBudget, BlocksAndTemporariesBeyondItAreRefused) {
  limit_gpu_memory(0, taken_before_ + 7 * block_bytes / 2);
  AlignedFloats first(backend().memory());
  first.reserve(block_floats);
  AlignedFloats second(backend().memory());
  try {
    second.reserve(4 * block_floats);
    FAIL() << "a block beyond the limit";
  } catch (const FailureError& error) {
    EXPECT_EQ(error.failure().code, Errc::out_of_memory);
    EXPECT_NE(out_of_memory_text(error), "");
  }
  try {
    at::empty({4 * block_floats}, at::Device(at::kCUDA, 0));
    FAIL() << "a temporary beyond the limit";
  } catch (const std::exception& error) {
    EXPECT_NE(out_of_memory_text(error), "");
  }
  second.reserve(block_floats); // what fits still does
}

TEST_F(GpuBudget, WhatTheAllocatorKeepsIsGivenBackBeforeItRefuses) {
  limit_gpu_memory(0, taken_before_ + 7 * block_bytes / 2);
  for (int i = 0; i < 2; ++i) { // of sizes that cannot be cut from each other
    AlignedFloats block(backend().memory());
    block.reserve((2 + i % 2) * block_floats - i);
  }
  AlignedFloats small(backend().memory());
  small.reserve(block_floats / 2);
}

TEST_F(GpuBudget, ThePeakHasBlocksAndTemporaries) {
  {
    AlignedFloats block(backend().memory());
    block.reserve(block_floats);
    const auto temporary = at::empty({block_floats}, at::Device(at::kCUDA, 0));
  }
  EXPECT_EQ(gpu_peak_bytes(0), taken_before_ + 2 * block_bytes);
  begin_gpu_peak(0);
  EXPECT_EQ(gpu_peak_bytes(0), taken_before_);
}

} // namespace
} // namespace troupe::models
