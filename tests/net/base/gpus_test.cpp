// GPUs and their memory over a stand-in for CUDA's runtime
// (tests/support/cuda/fake_cudart.cpp): what is refused, which device a thread
// uses, and what waits for kernels. No GPU is needed or used.
#include "config/base/error.hpp"
#include "net/base/gpus.hpp"
#include "net/base/library_file.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <span>
#include <thread>

namespace troupe::net {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::size_t fake_total = std::size_t{64} << 20;
constexpr std::size_t fake_block = std::size_t{1} << 20;

/// Functions of the stand-in beside the driver's.
struct FakeDriver {
  void (*kernel)(void* data) = nullptr;
  int (*faults)() = nullptr;
  int (*has_context)(int device) = nullptr;
  void (*begin)(int shares_memory, int count_result) = nullptr;

  FakeDriver() {
    LibraryFile file(TROUPE_FAKE_CUDART);
    file.find("fake_cuda_kernel", kernel);
    file.find("fake_cuda_faults", faults);
    file.find("fake_cuda_has_context", has_context);
    file.find("fake_cuda_begin", begin);
  }
};

class Gpus : public ::testing::Test {
protected:
  void SetUp() override {
    ASSERT_EQ(cuda_.why_not, "");
    begin(1, 0);
  }
  void begin(int shares_memory, int count_result) {
    driver_.begin(shares_memory, count_result);
  }
  /// Runs on a thread whose device is `device`.
  template <class Work>
  void on_device(int device, const Work& work) {
    std::thread([&] {
      cuda_.set_device(device);
      work();
    }).join();
  }

  FakeDriver driver_;
  const CudaRuntime cuda_ = CudaRuntime::open(TROUPE_FAKE_CUDART);
};

TEST_F(Gpus, AreDescribedByTheDriver) {
  const auto gpus = find_gpus(cuda_);
  EXPECT_THAT(gpus.names, ElementsAre("first", "second"));
  EXPECT_THAT(gpus.generations, ElementsAre(9, 9));
  EXPECT_THAT(gpus.memory_bytes, ElementsAre(fake_total, fake_total));
  EXPECT_NE(gpus.ids[0], gpus.ids[1]);
  EXPECT_EQ(gpus.driver, "CUDA 13.0");
  EXPECT_FALSE(gpus.is_refused);
}

TEST_F(Gpus, ThatDoNotShareTheirMemoryAreRefused) {
  begin(0, 0);
  const auto gpus = find_gpus(cuda_);
  EXPECT_TRUE(gpus.names.empty());
  EXPECT_TRUE(gpus.memory_bytes.empty());
  EXPECT_TRUE(gpus.is_refused);
  EXPECT_EQ(gpus.why_none, "first does not share its memory with the host");
}

TEST_F(Gpus, AreRefusedIfTheirDriverFails) {
  constexpr int insufficient_driver = 35;
  begin(1, insufficient_driver);
  EXPECT_TRUE(find_gpus(cuda_).is_refused);
  EXPECT_EQ(cuda_.clear_error(), 0) << "the next kernel launch would report it";
  constexpr int no_device = 100;
  begin(1, no_device);
  EXPECT_FALSE(find_gpus(cuda_).is_refused);
}

TEST_F(Gpus, ABlockIsZeroedByTheDevice) {
  void* const data = take_gpu_memory(cuda_, fake_block);
  const std::span bytes(static_cast<const char*>(data), fake_block);
  EXPECT_TRUE(std::ranges::all_of(bytes, [](char b) { return b == 0; }));
  give_gpu_memory(cuda_, data);
  EXPECT_EQ(driver_.faults(), 0);
}

TEST_F(Gpus, ABlockBeyondWhatIsFreeIsRefused) {
  void* const first = take_gpu_memory(cuda_, fake_total / 2);
  try {
    take_gpu_memory(cuda_, fake_total);
    FAIL() << "the driver would move pages to and fro";
  } catch (const FailureError& error) {
    EXPECT_EQ(error.failure().code, Errc::out_of_memory);
    EXPECT_EQ(error.failure().who, "gpu 0");
    EXPECT_EQ(error.failure().what, "a block of 0.067 GB does not fit: 0.034 "
                                    "GB are free of 0.067 GB");
  }
  evict_gpu_memory(cuda_, first, fake_total / 2);
  give_gpu_memory(cuda_, take_gpu_memory(cuda_, fake_total));
  give_gpu_memory(cuda_, first);
}

TEST_F(Gpus, WhatIsKeptForReuseMakesRoomForABlock) {
  static const CudaRuntime* runtime = nullptr;
  static void* kept = nullptr;
  runtime = &cuda_;
  kept = take_gpu_memory(cuda_, fake_total / 2);
  give_gpu_memory(cuda_, take_gpu_memory(cuda_, fake_total, [] {
                    give_gpu_memory(*runtime, kept);
                  }));
  EXPECT_EQ(driver_.faults(), 0);
}

TEST_F(Gpus, AThreadUsesItsOwnDeviceOnly) {
  on_device(1, [&] {
    void* const data = take_gpu_memory(cuda_, fake_block);
    evict_gpu_memory(cuda_, data, fake_block);
    give_gpu_memory(cuda_, data);
  });
  EXPECT_TRUE(driver_.has_context(1));
  EXPECT_FALSE(driver_.has_context(0)) << "half a gigabyte for nothing";
}

TEST_F(Gpus, CopiesOfABlockWaitForTheKernelsOfItsDevice) {
  void* block = nullptr;
  on_device(1, [&] {
    block = take_gpu_memory(cuda_, fake_block);
    driver_.kernel(block);
  });
  int value = 7;
  write_gpu_memory(cuda_, &value, block, sizeof value);
  value = 0;
  read_gpu_memory(cuda_, block, &value, sizeof value);
  EXPECT_EQ(value, 7);
  EXPECT_EQ(driver_.faults(), 0);
  give_gpu_memory(cuda_, block);
}

TEST_F(Gpus, AnAddressWithinABlockIsKnown) {
  auto* block = static_cast<std::byte*>(take_gpu_memory(cuda_, fake_block));
  EXPECT_TRUE(is_gpu_memory(block + fake_block - 1));
  EXPECT_FALSE(is_gpu_memory(block + fake_block));
  EXPECT_FALSE(is_gpu_memory(this));
  give_gpu_memory(cuda_, block);
  EXPECT_FALSE(is_gpu_memory(block));
}

TEST_F(Gpus, ABlockIsFreedAfterTheKernelsOfItsDevice) {
  void* data = nullptr;
  on_device(1, [&] {
    data = take_gpu_memory(cuda_, fake_block);
    driver_.kernel(data);
  });
  give_gpu_memory(cuda_, data); // by a thread of another device
  EXPECT_EQ(driver_.faults(), 0);
  int current = -1;
  cuda_.get_device(&current);
  EXPECT_EQ(current, 0);
}

TEST_F(Gpus, ABlockIsMovedAfterTheKernelsOfItsDevice) {
  void* data = nullptr;
  on_device(1, [&] {
    data = take_gpu_memory(cuda_, fake_block);
    driver_.kernel(data);
  });
  evict_gpu_memory(cuda_, data, fake_block);
  EXPECT_EQ(driver_.faults(), 0);
  give_gpu_memory(cuda_, data);
}

TEST(CudaRuntime, NamesWhatIsMissing) {
  EXPECT_THAT(CudaRuntime::open("libnone.so").why_not, HasSubstr("libnone.so"));
  EXPECT_THAT(CudaRuntime::open("libc.so.6").why_not,
              HasSubstr("cudaDriverGetVersion"));
}

} // namespace
} // namespace troupe::net
